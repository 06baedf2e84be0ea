"""Reads files of pairs: `## kept: what` or `## changed: what`, the code before, `==>`, the code after."""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "pairs"


class Pair(NamedTuple):
    name: str
    kept: bool
    before: str
    after: str


def pairs(name: str) -> list[Pair]:
    """The pairs of a file in the folder."""
    found = []
    for part in ("\n" + (FOLDER / name).read_text(encoding="utf-8")).split("\n## ")[1:]:
        title, _, code = part.partition("\n")
        kind, _, what = title.partition(": ")
        before, _, after = code.partition("\n==>\n")
        found.append(Pair(what, kind == "kept", before + "\n", after.rstrip() + "\n"))
    return found
