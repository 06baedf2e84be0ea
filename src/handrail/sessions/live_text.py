"""Streaming text: shown at once, saved every quarter of a second, never an event."""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from handrail.protocol.events import Answered, BackgroundEnded, Delta, Event, SubagentEvent, ToolFinished
from handrail.storage.event_log import RAW, Log, PartialText

PROGRESS = "progress"
BACKGROUND = "background"
"""Output of a command in the background, under the command's id."""
KINDS = ("text", "thinking", "output", PROGRESS, BACKGROUND)


class Buffer:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.starts: list[int] = []
        self.length = 0
        self.flushed = 0
        """How many of the parts are in the log."""


class IncomingBytes:
    """The bytes of an answer while it arrives; whoever receives it extends `data`."""

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.flushed = len(data)


class LiveText:
    """The streaming texts of one session in this process."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.watchers: list[Callable[[], None]] = []
        self._texts: dict[tuple[str, str], Buffer] = {}
        self._progress: dict[str, tuple[int, str]] = {}
        """{message: number of updates and the latest status line}; never stored."""
        self._incoming: dict[str, IncomingBytes] = {}
        """By request id; stored, but shown to nobody."""

    def add(self, message_id: str, kind: str, text: str) -> None:
        buffer = self._texts.setdefault((message_id, kind), Buffer())
        buffer.starts.append(buffer.length)
        buffer.parts.append(text)
        buffer.length += len(text)
        self._notify()

    def progress(self, message_id: str, status: str) -> None:
        """Replace the status line of a message that has no text yet."""
        updates, _ = self._progress.get(message_id, (0, ""))
        self._progress[message_id] = (updates + 1, status)
        self._notify()

    def _notify(self) -> None:
        for watcher in list(self.watchers):
            watcher()

    def receive(self, request_id: str, data: bytearray) -> None:
        """Save the bytes of an answer too, as they are added to `data`, until the request is settled."""
        self._incoming[request_id] = IncomingBytes(data)

    def flush(self, log: Log) -> None:
        if new := self.unsaved():
            log.add_partials(self.stream, new)

    def unsaved(self) -> list[PartialText]:
        """What came since the last time, for the caller to save."""
        new = []
        for (message, kind), buffer in self._texts.items():
            if buffer.flushed < len(buffer.parts):
                start = buffer.starts[buffer.flushed]
                new.append(PartialText(message, kind, start, "".join(buffer.parts[buffer.flushed :])))
                buffer.flushed = len(buffer.parts)
        for request_id, incoming in self._incoming.items():
            start, incoming.flushed = incoming.flushed, len(incoming.data)
            if start < incoming.flushed:
                new.append(PartialText(request_id, RAW, start, incoming.data[start:].decode("latin-1")))
        return new

    def text(self, message_id: str, kind: str) -> str:
        buffer = self._texts.get((message_id, kind))
        return "".join(buffer.parts) if buffer else ""

    def settle(self, message_id: str) -> None:
        """Forget a text that has become an event."""
        for key in [key for key in self._texts if key[0] == message_id]:
            del self._texts[key]
        self._progress.pop(message_id, None)
        self._incoming.pop(message_id, None)

    def since(self, offsets: dict[tuple[str, str], int]) -> Iterator[Delta]:
        """What a follower has not shown yet; updates its `offsets`."""
        # A copy: texts may come and go while the follower shows a delta.
        for (message, kind), buffer in list(self._texts.items()):
            shown = offsets.get((message, kind), 0)
            if shown < buffer.length:
                first = bisect_right(buffer.starts, shown) - 1
                text = "".join(buffer.parts[first:])[shown - buffer.starts[first] :]
                offsets[message, kind] = buffer.length
                yield Delta(self.stream, message, kind, shown, text)
        for message, (updates, status) in list(self._progress.items()):
            if offsets.get((message, PROGRESS), 0) < updates:
                offsets[message, PROGRESS] = updates
                yield Delta(self.stream, message, PROGRESS, 0, status)


def forget_offset(offsets: dict[tuple[str, str], int], event: Event) -> None:
    """Drop a follower's offset of a text that has become an event; a later text may reuse the id."""
    match event:
        case SubagentEvent(event={"type": "answered", "message_id": str() as ended}):
            _forget(offsets, ended)
        case SubagentEvent(event={"type": "tool_finished", "call_id": str() as ended}):
            _forget(offsets, ended)
        case Answered(message_id=ended) | ToolFinished(call_id=ended) | BackgroundEnded(background_id=ended):
            _forget(offsets, ended)


def _forget(offsets: dict[tuple[str, str], int], ended: str) -> None:
    for kind in KINDS:
        offsets.pop((ended, kind), None)


def stored_text(log: Log, stream: str, message_id: str, kind: str) -> str:
    """The saved part of one streaming text."""
    found = [each for each in log.partials(stream) if (each.message, each.kind) == (message_id, kind)]
    return "".join(each.text for each in found)


def stored_since(log: Log, stream: str, offsets: dict[tuple[str, str], int]) -> Iterator[Delta]:
    """Like `LiveText.since`, from the log: for a follower in another process than the holder."""
    for partial in log.partials(stream, offsets):
        key = (partial.message, partial.kind)
        shown = offsets.get(key, 0)
        end = partial.start + len(partial.text)
        if partial.start <= shown < end:
            offsets[key] = end
            yield Delta(stream, partial.message, partial.kind, shown, partial.text[shown - partial.start :])
