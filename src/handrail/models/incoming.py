"""One answer as its bytes come in: events, parts, and what it means when they are none."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from handrail.models.base import Part
from handrail.models.refusals import read_stream_error
from handrail.models.sse import EventReader, ServerEvent, looks_like_events
from handrail.protocol.errors import GiveUp, RetryLater

HEAD_BYTES = 200
QUOTED_CHARACTERS = 80


class StreamRefused(Exception):
    """An adapter's reader found an error object inside the stream."""

    def __init__(self, error: Any) -> None:
        super().__init__()
        self.refusal = read_stream_error(error)


class Reader(Protocol):
    """Turns the events of one answer into parts."""

    @property
    def begun(self) -> bool:
        """Whether anything has come that belongs to such an answer."""

    @property
    def finished(self) -> bool:
        """Whether the last event has come, so that nothing more need be read."""

    def read(self, event: ServerEvent) -> Iterable[Part]: ...

    def end(self) -> Iterable[Part] | None:
        """What follows a clean end of the stream; None when the answer is not complete."""


class Incoming:
    """Reads one answer. What its reader trips over is the server's mistake and never ours to raise."""

    def __init__(self, reader: Reader, host: str, connection: str) -> None:
        self._reader = reader
        self._host = host
        self._connection = connection
        self._events = EventReader()
        self._head = b""
        self._any_event = False

    def feed(self, data: bytes) -> Iterator[Part]:
        """The parts that these bytes complete, until the reader has finished."""
        self._head += data[: HEAD_BYTES - len(self._head)]
        with self._readable():
            for event in self._events.feed(data):
                self._any_event = True
                yield from self._reader.read(event)
                if self._reader.finished:
                    return

    def end(self) -> list[Part]:
        """The last parts, once the stream has ended cleanly or the reader has finished."""
        with self._readable():
            last = self._reader.end()
            if last is not None:
                return list(last)
        if not self._reader.begun and (self._any_event or not looks_like_events(self._head)):
            raise self._no_answer()
        raise RetryLater(f"{self._host} broke off before the answer was complete.", billed=True)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
            if not self._reader.begun:
                raise self._no_answer() from error
            raise RetryLater(
                f"{self._host} sent an event that cannot be read ({type(error).__name__}).", billed=True
            ) from error

    def _no_answer(self) -> GiveUp:
        """From the start this is something else, so asking again would bring the same."""
        came = " ".join(self._head.decode(errors="replace").split())[:QUOTED_CHARACTERS]
        return GiveUp(
            f"{self._host} sent something that is no answer of a model ({came}): "
            f"check base_url and protocol of connection {self._connection!r}, or the proxy in between."
        )
