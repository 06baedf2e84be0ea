"""An answer as it streams: thinking in tags told apart, and all of it as one value."""

from collections.abc import AsyncIterable
from typing import Any, NamedTuple

from handrail.models.base import (
    Blocked,
    CallPart,
    Finish,
    Finished,
    Opaque,
    Part,
    RawBytes,
    Structured,
    Text,
    Thinking,
    UsagePart,
)
from handrail.models.sendable import joined
from handrail.protocol.structured import StructuredAnswer
from handrail.protocol.values import ReadAs, ToolCall, Usage


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
    blocked: tuple[str, ...]
    """What can be read of calls that do not count, because the answer breaks off."""
    usage: Usage
    finish: Finish | None
    raw: bytes
    structured: StructuredAnswer | None = None
    problems: tuple[str, ...] = ()
    """Why an answer that should be structured is not."""
    read: tuple[ReadAs, ...] = ()
    """How it was read, where it is."""


class Collector:
    """Folds parts into an answer; may be asked for it at any moment."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._opaque: list[dict[str, Any]] = []
        self._calls: list[ToolCall] = []
        self._blocked: tuple[str, ...] = ()
        self._usage = Usage()
        self._finish: Finish | None = None
        self._raw = bytearray()
        self._structured: Structured | None = None

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
            case Blocked(calls):
                self._blocked = calls
            case Structured():
                self._structured, self._text = part, [part.text]
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
            calls=_blocked_together(self._calls),
            blocked=self._blocked,
            usage=self._usage,
            finish=self._finish,
            raw=bytes(self._raw),
            structured=self._structured.value if self._structured else None,
            problems=self._structured.problems if self._structured else (),
            read=self._structured.read if self._structured else (),
        )


def _blocked_together(calls: list[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of an answer; where one of them breaks off, nothing of the answer may have an effect."""
    if not any(call.read == "cut" for call in calls):
        return tuple(calls)
    mark = {"read": "cut", "problem": "the answer breaks off, so none of its calls counts"}
    return tuple(call.model_copy(update=mark) for call in calls)


async def collect(parts: AsyncIterable[Part]) -> Answer:
    """The whole answer of a stream."""
    collector = Collector()
    async for part in parts:
        collector.add(part)
    return collector.answer()
