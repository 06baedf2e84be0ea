"""Bytes as text, with what must survive an edit: the byte order mark and the kind of line ending."""

import codecs
import hashlib
from collections.abc import Iterable
from typing import Literal, NamedTuple

LineEnding = Literal["\n", "\r\n", "mixed"]
BOM = codecs.BOM_UTF8
LINE_CAP = 2_000
"""Characters kept of one line when lines are read one by one."""


class NotText(ValueError):
    """The bytes are no text; the message says why."""


class Text(NamedTuple):
    """A file's text without its byte order mark, line endings as they are."""

    text: str
    bom: bool
    ending: LineEnding


class Lines(NamedTuple):
    """Some lines of a file, without their endings; long ones are cut to `LINE_CAP`."""

    start: int
    lines: tuple[str, ...]
    total: int
    """How many lines the file has."""
    sha256: str
    clipped: bool
    """Whether a line was cut."""
    size: int
    """Bytes of the file."""


def decode(data: bytes) -> Text:
    """The text of a file's bytes."""
    _refuse_nul(data)
    bom = data.startswith(BOM)
    try:
        text = data[len(BOM) :].decode() if bom else data.decode()
    except UnicodeDecodeError as error:
        raise NotText(_not_utf8(error.start + (len(BOM) if bom else 0))) from error
    return Text(text, bom, ending_of(text))


def readable(data: bytes) -> str:
    """The text of any bytes, for people: what is no text is replaced."""
    try:
        return decode(data).text
    except NotText:
        return data.decode(errors="replace")


def encode(text: str, *, bom: bool) -> bytes:
    """The bytes of a text, in the way `decode` found them."""
    return (BOM if bom else b"") + text.encode()


def ending_of(text: str) -> LineEnding:
    """How lines end: all one way, or mixed. A text without any line break counts as `\\n`."""
    if "\r" not in text:
        return "\n"
    both = text.count("\r\n")
    return "\r\n" if both == text.count("\n") == text.count("\r") else "mixed"


def pick_lines(chunks: Iterable[bytes], start: int, end: int) -> Lines:
    """Lines `start` to `end` (counted from 1, both included) without keeping the rest in memory."""
    digest, decoder = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")()
    number, read, last = 1, 0, "\n"
    kept: dict[int, str] = {}
    clipped = False
    for chunk in chunks:
        _refuse_nul(chunk)
        digest.update(chunk)
        try:
            text = decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raise NotText(_not_utf8(read + error.start)) from error
        read += len(chunk)
        breaks = text.count("\n")
        if number + breaks >= start and number <= end:
            for line, piece in enumerate(text.split("\n"), start=number):
                if start <= line <= end:
                    whole = kept.get(line, "") + piece
                    clipped = clipped or len(whole) > LINE_CAP + 1
                    kept[line] = whole[: LINE_CAP + 1]
        number += breaks
        last = text[-1:] or last
    if decoder.getstate()[0]:
        raise NotText(_not_utf8(read))
    if last == "\n":
        kept.pop(number, None)
        number -= 1
    lines = tuple(kept[line].removesuffix("\r")[:LINE_CAP] for line in sorted(kept))
    if lines and start == 1:
        lines = (lines[0].removeprefix("\ufeff"), *lines[1:])
    return Lines(start, lines, number, digest.hexdigest(), clipped, read)


def _refuse_nul(data: bytes) -> None:
    if b"\0" in data:
        raise NotText("it holds NUL bytes, as binary files do")


def _not_utf8(position: int) -> str:
    return f"it is not UTF-8 (first bad byte near {position:,})"
