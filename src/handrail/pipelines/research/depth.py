"""How deep a piece of research goes: `quick:`, `standard:` or `deep:` before the question."""

import re
from typing import NamedTuple

DEPTH_WORD = re.compile(r"\s*(quick|standard|deep)\s*:\s*(?=\S)", re.IGNORECASE)


class Depth(NamedTuple):
    name: str
    questions: int
    """Sub-questions that are looked up."""
    paragraphs: int
    """That each of them gets."""
    tokens: int
    """Of paragraphs that the model is shown."""
    repairs: int
    """How often it writes again what could not be verified."""
    further: bool
    """Whether the web is searched and references between paragraphs are followed."""


QUICK = Depth("quick", 3, 10, 4_000, 0, further=False)
STANDARD = Depth("standard", 8, 20, 12_000, 1, further=True)
DEEP = Depth("deep", 15, 30, 24_000, 2, further=True)
DEPTHS = {depth.name: depth for depth in (QUICK, STANDARD, DEEP)}


class Asked(NamedTuple):
    question: str
    depth: Depth


def read_question(text: str) -> Asked:
    """The question without the word for its depth, and the depth; standard where none is named."""
    found = DEPTH_WORD.match(text)
    if found is None:
        return Asked(text.strip(), STANDARD)
    return Asked(text[found.end() :].strip(), DEPTHS[found[1].lower()])
