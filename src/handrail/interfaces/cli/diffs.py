"""Unified diffs as a person reads them: line numbers and signs instead of headers."""

import re

from handrail.interfaces.cli.styles import ACCENT, DIM, PLAIN, Line, line

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
INDENT = "    "


def is_diff(text: str) -> bool:
    return any(HUNK.match(one) for one in text.splitlines())


def render(text: str) -> list[Line]:
    """The lines of all hunks, numbered; a gap between hunks and a further file are marked."""
    rows: list[Line] = []
    old = new = old_left = new_left = 0
    named = False
    for one in text.split("\n"):
        if hunk := HUNK.match(one):
            if rows and not named:
                rows.append(line(INDENT, (DIM, "    …")))
            named = False
            old, old_left = int(hunk[1]), int(hunk[2] or 1)
            new, new_left = int(hunk[3]), int(hunk[4] or 1)
        elif one.startswith("\\"):
            rows.append(line(INDENT, (DIM, f"      ({one[2:].lower()})")))
        elif old_left <= 0 and new_left <= 0:
            if one.startswith("+++ ") and rows:
                rows.append(line(INDENT, (DIM, one[4:].removeprefix("b/"))))
                named = True
        elif one.startswith("-"):
            rows.append(_row(old, "-", one[1:], DIM))
            old, old_left = old + 1, old_left - 1
        elif one.startswith("+"):
            rows.append(_row(new, "+", one[1:], ACCENT))
            new, new_left = new + 1, new_left - 1
        else:
            rows.append(_row(new, " ", one[1:], PLAIN))
            old, old_left = old + 1, old_left - 1
            new, new_left = new + 1, new_left - 1
    return rows


def _row(number: int, sign: str, text: str, style: str) -> Line:
    return line(INDENT, (DIM, f"{number:>4} "), (style, f"{sign} {text}"))
