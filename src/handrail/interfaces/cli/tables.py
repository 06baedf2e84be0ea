"""Tables of markdown, with their columns aligned and long cells wrapped."""

import re
from collections.abc import Callable, Sequence

from handrail.interfaces.cli.styles import BOLD, DIM, PLAIN, Line, Piece, length, line, wrap

RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
BAR = re.compile(r"(?<!\\)\|")
GAP = "  "
NARROWEST = 6

Inline = Callable[[str], Line]


def is_row(text: str) -> bool:
    return text.lstrip().startswith("|")


def render(rows: Sequence[str], width: int, inline: Inline) -> list[Line]:
    """The rows as a table; as they are where they are none, or have more columns than there is room."""
    if len(rows) < 2 or not RULE.match(rows[1]):
        return [inline(row) for row in rows]
    head, *body = [cells(row) for row in (rows[0], *rows[2:])]
    count = max(len(row) for row in (head, *body))
    table = [[inline(cell) for cell in [*row, *[""] * (count - len(row))]] for row in (head, *body)]
    widths = fitting([max(length(row[at]) for row in table) for at in range(count)], width)
    if not widths:
        return [inline(row) for row in rows]
    bold = [tuple(Piece(style or BOLD, text) for style, text in cell) for cell in table[0]]
    rule = line((DIM, GAP.join("-" * each for each in widths)))
    return [*laid_out(bold, widths), rule, *(part for row in table[1:] for part in laid_out(row, widths))]


def cells(row: str) -> list[str]:
    """What stands between the bars."""
    inside = row.strip().removeprefix("|")
    inside = inside[:-1] if inside.endswith("|") and not inside.endswith("\\|") else inside
    return [cell.strip().replace("\\|", "|") for cell in BAR.split(inside)]


def fitting(widths: list[int], width: int) -> list[int]:
    """The widths with the widest made narrower until all fit; empty where they cannot."""
    room = width - len(GAP) * (len(widths) - 1)
    if room < NARROWEST * len(widths):
        return []
    while sum(widths) > room:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return [max(1, each) for each in widths]


def laid_out(row: Sequence[Line], widths: list[int]) -> list[Line]:
    """One row of the table, as many lines as its longest cell needs."""
    parts = [wrap(cell, each) for cell, each in zip(row, widths, strict=True)]
    done: list[Line] = []
    for number in range(max(len(part) for part in parts)):
        pieces: list[Piece] = []
        for part, each in zip(parts, widths, strict=True):
            shown = part[number] if number < len(part) else ()
            pieces += [*shown, Piece(PLAIN, " " * (each - length(shown)) + GAP)]
        done.append(trimmed(pieces))
    return done


def trimmed(pieces: list[Piece]) -> Line:
    while pieces and not pieces[-1].text.strip():
        pieces = pieces[:-1]
    return tuple(pieces)
