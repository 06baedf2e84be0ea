"""Styled lines of text: colours, widths, wrapping; and numbers as people read them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from handrail.protocol.values import Usage

ANSI = {"accent": "36", "bad": "31", "bold": "1", "code": "36", "dim": "2", "good": "32", "italic": "3"}
"""The styles, and the codes that a terminal has for them; the plain style is empty."""

INDENT = "  "
BODY_INDENT = "    "
NAME_COLUMNS = 10
"""Width of the first column: the name of a tool or a note."""

EMOJI = "[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]"
UNSAFE = re.compile(
    f"(?<!{EMOJI})\u200d|\u200d(?!{EMOJI})|"
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that could move the cursor, change the terminal, end a line, or make text read differently.

The joiner U+200D is harmless between two parts of an emoji.
"""


class Piece(NamedTuple):
    style: str
    text: str


Line = tuple[Piece, ...]


def line(*pieces: str | tuple[str, str]) -> Line:
    """A line of plain strings and (style, text) pairs."""
    return tuple(Piece("", piece) if isinstance(piece, str) else Piece(*piece) for piece in pieces)


def clean(text: str, *, tab: str = "    ") -> str:
    """The text with everything in it visible: control characters as `^[`, invisible ones as `<U+202E>`."""
    return UNSAFE.sub(_visible, text).replace("\t", tab)


def one_line(text: str) -> str:
    """The same on one line, blanks collapsed: no value can look like a line of ours."""
    return " ".join(clean(text.replace("\n", " ")).split())


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
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
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def length(content: Iterable[Piece]) -> int:
    return sum(columns(text) for _, text in content)


def fit(text: str, width: int) -> str:
    """The text cut to so many columns, with `…` where it was cut."""
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


def side_by_side(left: Line, right: Line, width: int) -> list[Line]:
    """Both on one line, the second at the right edge; below each other where there is no room."""
    gap = width - length(left) - length(right)
    if gap >= 2:
        return [(*left, Piece("", " " * gap), *right)]
    return [left, (Piece("", " " * max(0, width - length(right))), *right)]


def wrap(content: Line, width: int, indent: str = "") -> list[Line]:
    """The line broken at spaces; every line but the first starts with the indent."""
    if length(content) <= width:
        return [content]
    done: list[Line] = []
    current: list[Piece] = []
    used = 0
    for word in _words(content):
        fits = used + length(word) <= width
        if not fits and used > len(indent) * bool(done):
            done.append(trim_right(current))
            current, used = [Piece("", indent)] if indent else [], len(indent)
        if fits or not word[0].text.isspace():
            current += word
            used += length(word)
    return [*done, trim_right(current)]


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


def trim_right(pieces: list[Piece]) -> Line:
    while pieces and not pieces[-1].text.strip():
        pieces = pieces[:-1]
    return tuple(pieces)


def format_duration(seconds: float) -> str:
    """`0.4 s`, `42 s`, `2:05 min`, `1:02:03 h`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def format_clock(seconds: float) -> str:
    """The same in whole seconds, for a running clock."""
    return format_duration(seconds) if seconds >= 10 else f"{int(max(0.0, seconds))} s"


def format_age(seconds: float) -> str:
    """`just now`, `5 min ago`, `3 h ago`, `12 days ago`."""
    for size, unit in ((86_400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''} ago"
    return "just now"


def format_usd(cost: float | None) -> str:
    """`$0.12`; four digits below a cent, words where the price is not known."""
    if cost is None:
        return "cost not known"
    return f"${cost:.4f}" if 0 < cost < 0.01 else f"${cost:.2f}"


def format_usage(usage: Usage) -> str:
    """`1,204 in (900 cached)  96 out`."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    return f"{usage.input_tokens:,} in{cached}  {usage.output_tokens:,} out"


def format_bytes(count: int) -> str:
    """`0 kB`, `12 kB`, `3.1 MB`, `2,000 MB`."""
    megabytes = count / 1_000_000
    if megabytes < 0.9995:
        return f"{-(-count // 1000)} kB"
    return f"{megabytes:.1f} MB" if megabytes < 9.95 else f"{megabytes:,.0f} MB"


def count_of(count: int, noun: str) -> str:
    """`1 file`, `1,204 files`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def shorten(text: str, chars: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
