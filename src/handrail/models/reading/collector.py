"""Collects the parts of a stream into one answer, and separates `<think>` blocks from text."""

from collections.abc import AsyncIterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from handrail.models.model import (
    BlockedCalls,
    CallPart,
    Finished,
    Opaque,
    Part,
    RawBytes,
    StopReason,
    StructuredPart,
    Text,
    Thinking,
    UsagePart,
)
from handrail.models.reading.sanitize import join_surrogates
from handrail.protocol.values import ReadAs, StructuredAnswer, ToolCall, Usage


class ThinkTagSplitter:
    """Splits streamed text: a `<think>` block at the very start is thinking, the rest is text."""

    OPEN, CLOSE = "<think>", "</think>"

    def __init__(self) -> None:
        self._state = "start"
        self._held = ""

    def feed(self, piece: str) -> list[Text | Thinking]:
        """Parts that can be shown now. Characters that may still become a tag are held back."""
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
            parts.append(Text(join_surrogates(text)))
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
            parts.append(Thinking(join_surrogates(thought)))
        return rest

    def end(self) -> list[Text | Thinking]:
        held, self._held = join_surrogates(self._held), ""
        return [Thinking(held) if self._state == "thinking" else Text(held)] if held else []


class Answer(NamedTuple):
    """A whole answer, or part of one: `finish` is None if the provider did not end it."""

    text: str
    thinking: str
    opaque: tuple[dict[str, Any], ...]
    calls: tuple[ToolCall, ...]
    blocked: tuple[str, ...]
    """Descriptions of calls that do not run, because the answer was cut."""
    usage: Usage
    finish: StopReason | None
    raw: bytes
    structured: StructuredAnswer | None = None
    problems: tuple[str, ...] = ()
    read: tuple[ReadAs, ...] = ()
    recovered: StructuredAnswer | None = None


class AnswerCollector:
    """Collects parts into an answer; can be asked for it at any time."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._opaque: list[dict[str, Any]] = []
        self._calls: list[ToolCall] = []
        self._blocked: tuple[str, ...] = ()
        self._usage = Usage()
        self._finish: StopReason | None = None
        self.raw = bytearray()
        """The bytes received so far."""
        self._structured: StructuredPart | None = None

    def add(self, part: Part) -> None:
        match part:
            case RawBytes(data):
                self.raw += data
            case Text(text):
                self._text.append(text)
            case Thinking(text):
                self._thinking.append(text)
            case Opaque(block):
                self._opaque.append(block)
            case CallPart(call):
                self._calls.append(call)
            case BlockedCalls(calls):
                self._blocked = calls
            case StructuredPart():
                self._structured, self._text = part, [part.text]
            case UsagePart(usage):
                self._usage = usage
            case Finished(reason):
                self._finish = reason

    def answer(self) -> Answer:
        calls, structured = tuple(self._calls), self._structured
        if any(call.read == "cut" for call in calls):
            mark = {"read": "cut", "problem": "the answer breaks off, so none of its calls counts"}
            calls = tuple(replace(call, **mark) for call in calls)
        return Answer(
            text="".join(self._text),
            thinking="".join(self._thinking),
            opaque=tuple(self._opaque),
            calls=calls,
            blocked=self._blocked,
            usage=self._usage,
            finish=self._finish,
            raw=bytes(self.raw),
            structured=structured.value if structured else None,
            problems=structured.problems if structured else (),
            read=structured.read if structured else (),
            recovered=structured.recovered if structured else None,
        )


async def collect_answer(parts: AsyncIterable[Part]) -> Answer:
    collector = AnswerCollector()
    async for part in parts:
        collector.add(part)
    return collector.answer()
