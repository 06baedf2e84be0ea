"""What is asked for approval, as it is shown: all of it, nothing cut, nothing that cannot be seen."""

import re
import unicodedata
from functools import lru_cache

from handrail.interfaces.cli import diffs
from handrail.interfaces.cli.styles import (
    ACCENT,
    BODY_INDENT,
    BOLD,
    DIM,
    INDENT,
    NAME_COLUMNS,
    PLAIN,
    Line,
    Piece,
    clean,
    columns,
    length,
    line,
    wrap,
)
from handrail.interfaces.cli.tool_lines import CALLED
from handrail.protocol.events import ApprovalAsked

SHOWN_AT_ONCE = 60
GOES_ON = "↪ "
NEAR = 16
BLANKS = re.compile(" {24,}")


def whole(asked: ApprovalAsked, width: int) -> list[Line]:
    """Every line of what would be done; long ones go on below themselves."""
    return list(_whole(asked.tool, asked.summary, asked.preview, width))


@lru_cache(maxsize=4)  # while it waits for an answer, it is drawn several times a second
def _whole(tool: str, summary: str, preview: str, width: int) -> tuple[Line, ...]:
    head = Piece(DIM, f"{INDENT}{CALLED.get(tool, tool):<{NAME_COLUMNS}}")
    if diffs.is_diff_of(preview, summary):
        rows = [(head, Piece(PLAIN, summary)), *diffs.render(preview)]
    else:
        first, *others = (preview if preview.strip() else summary).rstrip().split("\n")
        below = Piece(DIM, " " * len(head.text))
        rows = [(head, Piece(PLAIN, first)), *((below, Piece(PLAIN, other)) for other in others)]
    return tuple(part for row in rows for part in broken(row, width))


def asked_lines(asked: ApprovalAsked, width: int) -> list[Line]:
    """As much as is shown at once, and how much more there is."""
    rows = whole(asked, width)
    rows += [line((DIM, f"{INDENT}{'intent':<{NAME_COLUMNS}}"), asked.intent)] if asked.intent else []
    if not (more := hidden(asked, width)):
        return rows
    first = SHOWN_AT_ONCE // 3
    notice = line((BOLD, f"{BODY_INDENT}… {more} lines are hidden here; v shows all of it"))
    return [*rows[:first], notice, *rows[first + more :]]


def hidden(asked: ApprovalAsked, width: int) -> int:
    """How many lines `asked_lines` leaves out."""
    return max(0, len(whole(asked, width)) - SHOWN_AT_ONCE)


def left_out(asked: ApprovalAsked) -> int:
    """How many lines of the change nobody can see here, because the preview does not have them."""
    note = diffs.NOTE.fullmatch(asked.preview.rpartition("\n")[2])
    return int(note[1]) if note else 0


def keys_line(width: int, *, more: bool, entry: str = "") -> list[Line]:
    """The line that waits for one key."""
    keys = [("y", "yes"), ("n", "no"), ("a", "always in this session"), ("?", "why am I asked")]
    if entry:
        keys.insert(3, ("w", f"write `{clean(entry)}` to your allowed commands"))
    if more:
        keys.insert(0, ("v", "view all"))
    pieces: list[str | tuple[str, str]] = [(BOLD, "  allow?")]
    for key, meaning in keys:
        pieces += ["   ", (ACCENT, key), f" {meaning}"]
    return wrap(line(*pieces), width, " " * 11)


def broken(content: Line, width: int) -> list[Line]:
    """The line with its last piece broken where the width ends, after a space if there is one near it.

    No character of it is lost.
    """
    *head, (style, text) = content
    start = length(head)
    rows: list[Line] = []
    room, part, used = max(1, width - start), list[str](), 0
    for unit in units(text):
        if part and used + columns(unit) > room:
            kept = len(part) - next((at for at, each in enumerate(reversed(part[-NEAR:])) if each == " "), 0)
            rows.append((*head, Piece(style, "".join(part[:kept]))))
            head = [Piece(DIM, " " * start + GOES_ON)]
            room, part = max(1, width - start - len(GOES_ON)), part[kept:]
            used = sum(map(columns, part))
        part.append(unit)
        used += columns(unit)
    return [*rows, (*head, Piece(style, "".join(part)))]


def units(text: str) -> list[str]:
    """The text in parts that stay together, with what is blank or invisible spelled out."""
    spelled = "".join(map(seen, text.replace("\t", "    ")))
    parts: list[str] = []
    end = 0
    for run in BLANKS.finditer(spelled):
        parts += [*spelled[end : run.start()], f"·×{len(run[0])}"]  # noqa: RUF001
        end = run.end()
    return [*parts, *spelled[end:]]


def seen(character: str) -> str:
    """The character as it can be seen: `<U+200B>` for one that cannot."""
    if character == " " or character.isascii():
        return clean(character)
    blank = unicodedata.category(character) in ("Cf", "Cs", "Zl", "Zp", "Zs")
    return f"<U+{ord(character):04X}>" if blank else clean(character)
