"""All reading of model output: arguments, calls written as text, thinking in tags, the answer as one value.

Nothing here guesses. What is not whole and unambiguous is not a call, or is a call whose `problem` says why.
"""

import json
import re
from collections.abc import AsyncIterable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from handrail.models.base import (
    CallPart,
    Finish,
    Finished,
    Opaque,
    Part,
    RawBytes,
    Text,
    Thinking,
    UsagePart,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall, Usage

FENCE = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
TAGGED = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
NAME_KEYS = ("name", "tool", "function")
ARGUMENT_KEYS = ("arguments", "args", "parameters", "input")


class Arguments(NamedTuple):
    """What was read, or why nothing could be."""

    values: dict[str, Any]
    problem: str = ""


def read_arguments(text: str) -> Arguments:
    """The one JSON object in a call's arguments: alone, in a fence, or first in surrounding words."""
    text = joined(text).strip()
    if not text:
        return Arguments({})
    blocks = FENCE.findall(text)
    for candidate in (text, *(blocks if len(blocks) == 1 else ())):
        value = _parse(candidate)
        if isinstance(value, str):
            value = _parse(value)
        if isinstance(value, dict):
            return _sendable(value)
    return _first_object(text)


def _first_object(text: str) -> Arguments:
    start = text.find("{")
    if start < 0:
        return Arguments({}, "the arguments are not a JSON object")
    # Only the first brace counts: an inner object of a broken outer one would be a guess.
    try:
        value, end = json.JSONDecoder(parse_constant=_refuse).raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        return Arguments({}, f"the arguments are not valid JSON: {error}")
    if "{" in text[end:]:
        return Arguments({}, "the arguments hold more than one JSON object")
    return _sendable(value)


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _sendable(value: dict[str, Any]) -> Arguments:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return Arguments({}, "the arguments hold half of a character (a lone surrogate)")
    return Arguments(value)


def read_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """A native call as a value; a call without an id gets one."""
    values, problem = read_arguments(arguments)
    if not name:
        problem = "the call names no tool"
    return ToolCall(id=call_id or new_id("call"), name=name, arguments=values, problem=problem)


def calls_in_text(text: str, tools: Collection[str]) -> tuple[ToolCall, ...]:
    """Calls of offered tools that a model wrote as tagged, fenced or bare JSON."""
    blocks = TAGGED.findall(text) or FENCE.findall(text) or [text]
    calls: list[ToolCall] = []
    for block in blocks:
        value = _parse(block.strip())
        for each in value if isinstance(value, list) else [value]:
            call = _text_call(each, tools)
            if call is not None:
                calls.append(call)
    return tuple(calls)


def _text_call(value: Any, tools: Collection[str]) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name: str | None = next((value[key] for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in ARGUMENT_KEYS if key in value), None)
    if name is None or name not in tools:
        return None
    if isinstance(arguments, str):
        return read_call("", name, arguments)
    if isinstance(arguments, dict):
        values, problem = _sendable(arguments)
        return ToolCall(id=new_id("call"), name=name, arguments=values, problem=problem)
    return None


def joined(text: str) -> str:
    """Text whose surrogate halves, which some servers send apart, are characters again."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class TextReader:
    """Splits text as it streams: a `<think>` block at the very start is thinking, the rest is text."""

    OPEN, CLOSE = "<think>", "</think>"

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, piece: str) -> list[Text | Thinking]:
        """What can be shown now. Bytes that may still become a tag or a whole character are held back."""
        text = self._held + piece
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        parts: list[Text | Thinking] = []
        if self._state == "start":
            text = self._at_start(text)
        if self._state == "thinking":
            text = self._inside(text, parts)
        if self._state == "after":
            text = text.lstrip("\n")
            self._state = "text" if text else "after"
        if self._state == "text" and text:
            parts.append(Text(joined(text)))
        return parts

    def _at_start(self, text: str) -> str:
        begun = text.lstrip()
        if begun.startswith(self.OPEN):
            self._state = "thinking"
            return begun.removeprefix(self.OPEN)
        if self.OPEN.startswith(begun):
            self._held = text + self._held
            return ""
        self._state = "text"
        return text

    def _inside(self, text: str, parts: list[Text | Thinking]) -> str:
        thought, tag, rest = text.partition(self.CLOSE)
        if tag:
            self._state = "after"
        else:
            keep = next((n for n in range(len(self.CLOSE) - 1, 0, -1) if text.endswith(self.CLOSE[:n])), 0)
            thought, self._held = text[: len(text) - keep], text[len(text) - keep :] + self._held
        if thought:
            parts.append(Thinking(joined(thought)))
        return rest

    def end(self) -> list[Text | Thinking]:
        """What was held back, now that nothing more comes."""
        held, self._held = joined(self._held), ""
        if not held:
            return []
        return [Thinking(held) if self._state == "thinking" else Text(held)]


class Answer(NamedTuple):
    """A whole answer, or what there was of one: `finish` is None when the provider did not end it."""

    text: str
    thinking: str
    opaque: tuple[dict[str, Any], ...]
    calls: tuple[ToolCall, ...]
    usage: Usage
    finish: Finish | None
    raw: bytes


@dataclass(slots=True)
class Collector:
    """Folds parts into an answer; may be asked for it at any moment."""

    _text: list[str] = field(default_factory=list)
    _thinking: list[str] = field(default_factory=list)
    _opaque: list[dict[str, Any]] = field(default_factory=list)
    _calls: list[ToolCall] = field(default_factory=list)
    _usage: Usage = field(default_factory=Usage)
    _finish: Finish | None = None
    _raw: bytearray = field(default_factory=bytearray)

    def add(self, part: Part) -> None:
        match part:
            case RawBytes(data):
                self._raw += data
            case Text(text):
                self._text.append(text)
            case Thinking(text):
                self._thinking.append(text)
            case Opaque(block):
                self._opaque.append(block)
            case CallPart(call):
                self._calls.append(call)
            case UsagePart(usage):
                self._usage = usage
            case Finished(reason):
                self._finish = reason

    def answer(self) -> Answer:
        """What has come so far."""
        return Answer(
            text="".join(self._text),
            thinking="".join(self._thinking),
            opaque=tuple(self._opaque),
            calls=tuple(self._calls),
            usage=self._usage,
            finish=self._finish,
            raw=bytes(self._raw),
        )


async def collect(parts: AsyncIterable[Part]) -> Answer:
    """The whole answer of a stream."""
    collector = Collector()
    async for part in parts:
        collector.add(part)
    return collector.answer()
