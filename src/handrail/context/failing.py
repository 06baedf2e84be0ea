"""What of a failing check's output says why it fails."""

import re

# \u2139 is the sign before what node's runner says of itself.
NOISE = re.compile(
    r"\s*(at |# |duration_ms|type:|\.\.\.$|---$|code:|name:|stack:|generatedMessage|location:|failureType"
    r"|TAP |1\.\.|ok |operator:|\u2139|\^+$|[=-]+$|Ran \d|FAILED|$)|.*node:internal"
)
PLACE = re.compile(r"(?P<path>[\w./-]+\.\w+)(?:\", line |:)(?P<line>\d+)")
MOST_LINES, MOST_CHARACTERS = 14, 900
BEFORE, AFTER = 8, 1
"""Lines around a place that the output names: a test is introduced before the line that fails."""


def telling_lines(output: str, root: str) -> str:
    """The first lines that are about the failure, without what runners say of themselves."""
    lines = [line.rstrip() for line in output.replace(f"{root}/", "").splitlines() if not NOISE.match(line)]
    return "\n".join(lines[:MOST_LINES])[:MOST_CHARACTERS]


def lines_named(output: str, path: str, text: str) -> list[int]:
    """Numbers, from 0, of the lines of a file around the places that the output names in it."""
    count = len(text.splitlines())
    found: set[int] = set()
    for place in PLACE.finditer(output):
        if place["path"] == path or place["path"].endswith(f"/{path}"):
            line = int(place["line"]) - 1
            found.update(range(max(0, line - BEFORE), min(count, line + AFTER + 1)))
    return sorted(found)
