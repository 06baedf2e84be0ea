"""Text as it streams: shown at once, kept by the log every quarter of a second, never a fact."""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from handrail.protocol.events import Answered, BackgroundEnded, Delta, Event, ToolFinished
from handrail.storage.log import Log, Partial

PROGRESS = "progress"
BACKGROUND = "background"
"""Output of a command in the background, under the command's id."""
KINDS = ("text", "thinking", "output", PROGRESS, BACKGROUND)


class Buffer:
    """Text of one message as far as it has come."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.starts: list[int] = []
        self.length = 0
        self.flushed = 0
        """How many of the parts the log has."""


class Live:
    """The streaming texts of one session in this process."""

    def __init__(self, stream: str, ring: Callable[[], None]) -> None:
        self.stream = stream
        self._ring = ring
        self._texts: dict[tuple[str, str], Buffer] = {}
        self._progress: dict[str, tuple[int, str]] = {}
        """How often it was told of a message how far it is, and the last word on it; never kept."""

    def add(self, message_id: str, kind: str, text: str) -> None:
        buffer = self._texts.setdefault((message_id, kind), Buffer())
        buffer.starts.append(buffer.length)
        buffer.parts.append(text)
        buffer.length += len(text)
        self._ring()

    def progress(self, message_id: str, words: str) -> None:
        """Say how far a message is before its first word; what was said before no longer counts."""
        told, _ = self._progress.get(message_id, (0, ""))
        self._progress[message_id] = (told + 1, words)
        self._ring()

    def flush(self, log: Log) -> None:
        """Give the log what it does not have yet."""
        new = []
        for (message, kind), buffer in self._texts.items():
            if buffer.flushed < len(buffer.parts):
                start = buffer.starts[buffer.flushed]
                new.append(Partial(message, kind, start, "".join(buffer.parts[buffer.flushed :])))
                buffer.flushed = len(buffer.parts)
        if new:
            log.add_partials(self.stream, new)

    def text(self, message_id: str, kind: str) -> str:
        buffer = self._texts.get((message_id, kind))
        return "".join(buffer.parts) if buffer else ""

    def settle(self, message_id: str) -> None:
        """The text has become an event."""
        for key in [key for key in self._texts if key[0] == message_id]:
            del self._texts[key]
        self._progress.pop(message_id, None)

    def since(self, offsets: dict[tuple[str, str], int]) -> Iterator[Delta]:
        """What a follower has not shown yet; `offsets` is its own memory and is brought up to date."""
        # A copy: whoever shows a delta may take its time, and texts come and go meanwhile.
        for (message, kind), buffer in list(self._texts.items()):
            shown = offsets.get((message, kind), 0)
            if shown < buffer.length:
                first = bisect_right(buffer.starts, shown) - 1
                text = "".join(buffer.parts[first:])[shown - buffer.starts[first] :]
                offsets[message, kind] = buffer.length
                yield Delta(self.stream, message, kind, shown, text)
        for message, (told, words) in list(self._progress.items()):
            if offsets.get((message, PROGRESS), 0) < told:
                offsets[message, PROGRESS] = told
                yield Delta(self.stream, message, PROGRESS, 0, words)


def forget(offsets: dict[tuple[str, str], int], event: Event) -> None:
    """Drop what a follower remembers of a text that has become an event; a later one may have the same id."""
    match event:
        case Answered(message_id=ended) | ToolFinished(call_id=ended) | BackgroundEnded(background_id=ended):
            for kind in KINDS:
                offsets.pop((ended, kind), None)


def stored_text(log: Log, stream: str, message_id: str, kind: str) -> str:
    """What the log has of one text that streams."""
    found = [each for each in log.partials(stream) if (each.message, each.kind) == (message_id, kind)]
    return "".join(each.text for each in found)


def stored_since(log: Log, stream: str, offsets: dict[tuple[str, str], int]) -> Iterator[Delta]:
    """The same from the log, for a follower in another process than the holder."""
    for partial in log.partials(stream):
        key = (partial.message, partial.kind)
        shown = offsets.get(key, 0)
        end = partial.start + len(partial.text)
        if partial.start <= shown < end:
            offsets[key] = end
            yield Delta(stream, partial.message, partial.kind, shown, partial.text[shown - partial.start :])
