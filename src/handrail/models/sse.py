"""Server-sent events out of raw bytes, right at every byte boundary."""

from collections.abc import Iterator
from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class ServerEvent(NamedTuple):
    """One dispatched event: its name (empty when the server gave none) and its joined data lines."""

    name: str
    data: str


def looks_like_events(head: bytes) -> bool:
    """Whether a stream that begins so, and may be cut here, can be one of server-sent events."""
    line = head.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    return any(line.startswith(field) or field.startswith(line) for field in FIELDS)


class EventReader:
    """Feed it bytes as they come; it gives each event once its closing blank line is there.

    Lines end with LF, CR or CRLF, wherever the bytes are split. A line is decoded only when it is whole, so a
    character never breaks. An event without its blank line is not given: it may be cut.
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
            return self._dispatch()
        field, _, value = line.decode().partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        event = ServerEvent(self._name, "\n".join(self._data)) if self._data else None
        self._name = ""
        self._data = []
        return event
