"""Reads files of pairs: `## kind: what`, the code before, `==>`, the code after.

The kinds: `kept` is confirmed as a refactor, `changed` does something else, and `alarm` keeps behaviour in a
way that the check does not prove.
"""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "pairs"


class Pair(NamedTuple):
    kind: str
    name: str
    before: str
    after: str


def pairs(name: str) -> list[Pair]:
    """The pairs of a file in the folder."""
    found = []
    for part in ("\n" + (FOLDER / name).read_text(encoding="utf-8")).split("\n## ")[1:]:
        title, _, code = part.partition("\n")
        kind, _, what = title.partition(": ")
        before, _, after = code.partition("\n==>\n")
        found.append(Pair(kind, what, before + "\n", after.rstrip() + "\n"))
    return found
