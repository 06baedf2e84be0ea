"""Server-sent events parsed from raw bytes, and an answer read from them as it streams."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from handrail.models.model import Part
from handrail.models.wire.provider_errors import read_stream_error
from handrail.protocol.errors import GiveUp, RetryLater

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SSE_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class ServerEvent(NamedTuple):
    """One dispatched event: its name (empty when the server gave none) and its joined data lines."""

    name: str
    data: str


class SseParser:
    """Parses bytes as they come; gives each event once its closing blank line is there.

    Lines end with LF, CR or CRLF, wherever the bytes are split. A line is decoded only when it is whole, so a
    character never breaks.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._after_cr = False
        self._first_line = True
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        """Events that these bytes complete. Raises UnicodeDecodeError where a line is not UTF-8."""
        if not data:
            return
        rest = data[1:] if self._after_cr and data.startswith(b"\n") else data
        self._after_cr = data.endswith(b"\r")
        pieces = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for piece in pieces[:-1]:
            self._line += piece
            event = self._end_line(bytes(self._line))
            self._line.clear()
            if event is not None:
                yield event
        self._line += pieces[-1]

    def _end_line(self, line: bytes) -> ServerEvent | None:
        if self._first_line:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self._first_line = False
        if not line:
            name, data, self._name, self._data = self._name, self._data, "", []
            return ServerEvent(name, "\n".join(data)) if data else None
        field, _, value = line.decode().partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None


HEAD_BYTES = 200


class StreamError(Exception):
    """An adapter's reader found an error object inside the stream."""

    def __init__(self, error: Any) -> None:
        super().__init__()
        self.refusal = read_stream_error(error)


class AnswerReader(Protocol):
    """Turns the events of one answer into parts."""

    started: bool
    """Something has come that belongs to an answer of this protocol."""
    finished: bool
    """The last event has come, so nothing more need be read."""

    def read(self, event: ServerEvent) -> Iterable[Part]: ...

    def end(self) -> Iterable[Part] | None:
        """The last parts, after a clean end of the stream; None when the answer is not complete."""


class IncomingAnswer:
    """Reads one answer. An event that its reader cannot read counts as the server's mistake."""

    def __init__(self, reader: AnswerReader, host: str, connection: str) -> None:
        self._reader = reader
        self._host = host
        self._connection = connection
        self._events = SseParser()
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
        if not self._reader.started and (self._any_event or not begins_like_events(self._head)):
            raise self._no_answer()
        raise cut_off(self._host)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
            if not self._reader.started:
                raise self._no_answer() from error
            raise unreadable_event(self._host, error) from error

    def _no_answer(self) -> GiveUp:
        return no_answer(self._host, self._connection, self._head)


def begins_like_events(head: bytes) -> bool:
    """Whether these may be the first bytes of a stream of events."""
    line = head.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    return any(line.startswith(field) or field.startswith(line) for field in SSE_FIELDS)


def cut_off(host: str) -> RetryLater:
    return RetryLater(f"{host} broke off before the answer was complete.", billed=True)


def unreadable_event(host: str, error: Exception) -> RetryLater:
    what = f"sent an event that cannot be read ({type(error).__name__})"
    return RetryLater(f"{host} {what}.", billed=True)


def no_answer(host: str, connection: str, head: bytes) -> GiveUp:
    """It was something else from the start, so asking again would bring the same."""
    start = " ".join(head.decode(errors="replace").split())[:80]
    return GiveUp(
        f"{host} sent something that is not a model's answer ({start}): "
        f"check base_url and protocol of connection {connection!r}, or the proxy in between."
    )
