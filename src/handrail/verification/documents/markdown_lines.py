"""The lines of a Markdown file as bytes, each with whether it is text or part of a code block or a comment.

Bytes, so that whatever is not changed stays as it is: line endings, encodings, blanks at the end.
"""

import re
from typing import NamedTuple

LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
FENCE = re.compile(rb"[ \t>]*(?:[-*+][ \t]+|\d{1,9}[.)][ \t]+)?(`{3,}|~{3,})(.*)")
BACKTICKS = re.compile(rb"`+")
BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    start: int
    """Offset of its first byte in the file."""
    text: bytes
    """Without its line ending."""
    ending: bytes
    is_text: bool
    """False in a fenced code block, a comment, or the settings at the head of a file."""


def read_lines(data: bytes) -> list[Line]:
    found = []
    fence, in_comment = b"", False
    at = len(BOM) if data.startswith(BOM) else 0
    head_end = _head_end(data, at)
    for match in LINE.finditer(data, at):
        text = match[0].rstrip(b"\r\n")
        is_text = match.start() >= head_end and not fence and not in_comment
        may_open = (b"```" in text or b"~~~" in text) and match.start() >= head_end and not in_comment
        opened = FENCE.fullmatch(text) if may_open else None
        if opened and fence:
            if opened[1].startswith(fence) and not opened[2].strip():
                fence = b""
        elif opened and not (opened[1].startswith(b"`") and b"`" in opened[2]):
            fence, is_text = opened[1], False
        elif not fence and b"--" in text:
            in_comment = _ends_in_comment(text, in_comment)
        found.append(Line(match.start(), text, match[0][len(text) :], is_text))
    return found


def _ends_in_comment(text: bytes, in_comment: bool) -> bool:
    at = 0
    plain = _without_code(text)
    while True:
        found = plain.find(b"-->" if in_comment else b"<!--", at)
        if found < 0:
            return in_comment
        in_comment, at = not in_comment, found + 3


def _without_code(text: bytes) -> bytes:
    """The line with blanks in place of its code spans, in time linear in its length."""
    runs = list(BACKTICKS.finditer(text))
    closing: dict[int, int] = {}
    """{run: the next one of the same length}"""
    later: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        length = len(runs[number][0])
        if length in later:
            closing[number] = later[length]
        later[length] = number
    plain, number = bytearray(text), 0
    while number < len(runs):
        end = closing.get(number)
        if end is not None:
            span = slice(runs[number].start(), runs[end].end())
            plain[span] = b" " * (span.stop - span.start)
        number = (number if end is None else end) + 1
    return bytes(plain)


def _head_end(data: bytes, at: int) -> int:
    """Where settings between two lines of dashes at the head of a file end; 0 if there are none."""
    found = re.compile(rb"---[ \t]*\r?\n(?:[^\n]*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|$)").match(data, at)
    return found.end() if found else 0


def newline_of(data: bytes) -> bytes:
    """The line ending that a file uses first; a line feed if it has none."""
    found = re.search(rb"\r\n|\n|\r", data)
    return found[0] if found else b"\n"
