"""Styled text: pieces, lines of pieces, and the one place that turns them into bytes for a terminal."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ACCENT, BAD, BOLD, CODE, DIM, GOOD, ITALIC, PLAIN = (
    "accent",
    "bad",
    "bold",
    "code",
    "dim",
    "good",
    "italic",
    "",
)

ANSI = {ACCENT: "36", BAD: "31", BOLD: "1", CODE: "36", DIM: "2", GOOD: "32", ITALIC: "3"}

INDENT = "  "
BODY_INDENT = "    "
NAME_COLUMNS = 10
"""Of a tool or a note, before what it says."""

UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""What could move the cursor, change the terminal, or make text read otherwise than it is."""


class Piece(NamedTuple):
    style: str
    text: str


Line = tuple[Piece, ...]


def line(*pieces: str | tuple[str, str]) -> Line:
    """A line of plain strings and (style, text) pairs."""
    return tuple(Piece(PLAIN, piece) if isinstance(piece, str) else Piece(*piece) for piece in pieces)


def clean(text: str) -> str:
    """The text with everything in it visible: tabs as spaces, control characters as `^[` or `<U+202E>`."""
    return UNSAFE.sub(_visible, text)


def flat(text: str) -> str:
    """The same on one line, with one space for each run of them: no value can look like a line of ours."""
    return " ".join(clean(text.replace("\n", " ")).split())


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == 9:
        return "    "
    return f"^{chr(code ^ 64)}" if code < 32 or code == 127 else f"<U+{code:04X}>"


def ansi(content: Line, *, colour: bool) -> str:
    """The line as it goes to a terminal, without its end."""
    if not colour:
        return "".join(clean(text) for _, text in content)
    return "".join(
        f"\x1b[{ANSI[style]}m{clean(text)}\x1b[0m" if style and text else clean(text)
        for style, text in content
    )


def plain(content: Line) -> str:
    return ansi(content, colour=False)


def columns(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def length(content: Iterable[Piece]) -> int:
    return sum(columns(text) for _, text in content)


def fit(text: str, width: int) -> str:
    """The text cut to so many columns, with `…` where something is missing."""
    text = clean(text)
    if columns(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += _columns_of(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…" if width > 0 else ""


def beside(left: Line, right: Line, width: int) -> list[Line]:
    """The two on one line, the second at the right edge; below each other where there is no room."""
    gap = width - length(left) - length(right)
    if gap >= 2:
        return [(*left, Piece(PLAIN, " " * gap), *right)]
    return [left, (Piece(PLAIN, " " * max(0, width - length(right))), *right)]


def wrap(content: Line, width: int, indent: str = "") -> list[Line]:
    """The line broken at spaces; what follows the first break starts with the indent."""
    if length(content) <= width:
        return [content]
    done: list[Line] = []
    current: list[Piece] = []
    used = 0
    for word in _words(content):
        fits = used + length(word) <= width
        if not fits and used > len(indent) * bool(done):
            done.append(_trimmed(current))
            current, used = [Piece(PLAIN, indent)] if indent else [], len(indent)
        if fits or not word[0].text.isspace():
            current += word
            used += length(word)
    return [*done, _trimmed(current)]


def _words(content: Line) -> Iterator[list[Piece]]:
    """Runs of spaces, and runs of anything else across styles."""
    word: list[Piece] = []
    for style, text in content:
        for part in re.findall(r"\s+|\S+", clean(text)):
            blank = part.isspace()
            if word and (blank or word[-1].text.isspace()):
                yield word
                word = []
            word.append(Piece(style, part))
    if word:
        yield word


def _trimmed(pieces: list[Piece]) -> Line:
    while pieces and not pieces[-1].text.strip():
        pieces = pieces[:-1]
    return tuple(pieces)
