"""Whether the tests decide between a change that passes and others that pass too."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from handrail.engine.search.mutations import COMMON, PIECE, mutations
from handrail.engine.search.policy import Line, Question, Situation, chance
from handrail.engine.search.source import find_functions
from handrail.protocol.events import CandidateTried
from handrail.verification.behaviour.behaviour import first_difference
from handrail.verification.candidates import Candidates

MUCH = 4.0
"""How many times likelier, by the model, one of two changes must be to be chosen."""
MOST_COMPARED = 4
EDGE_SECONDS, MOST_EDGES = 10.0, 40
"""For edges in the lines that were changed."""
EDGES = ("<", "<=", ">", ">=", "+", "-")

WRITTEN_FREELY, WRITTEN_WARM = 0.5, 0.1
"""How likely an answer is that was not weighed: one at temperature 0, and any other."""


class Passing(NamedTuple):
    """A change with which all tests pass."""

    path: str
    text: str
    change: str
    chance: float
    """How likely the model finds it."""


class Choice(NamedTuple):
    best: Passing
    doubt: str = ""
    """Two changes that pass, and an input for which they differ. Empty where none differs, or where the other
    is no slip in the first and clearly less likely."""


def likelihood(now: Situation, question: Question, tried: CandidateTried) -> float:
    """How likely the model finds a change."""
    line = Line(question.path, question.line)
    weighed = now.branches.get(line, ())
    if question.kind == "mutation":
        return chance(weighed, question.prefix)
    if question.kind == "line" and weighed:
        return chance(weighed, now.written.get(line, {}).get(question.prefix, ""))
    return WRITTEN_WARM if tried.temperature else WRITTEN_FREELY


async def choose(
    candidates: Candidates, files: Mapping[str, str], passing: Sequence[Passing], start: Mapping[str, str]
) -> Choice:
    """The likeliest of the changes, each on top of these files; the first of those that are as likely."""
    best = max(passing, key=lambda each: each.chance)
    if best.chance < MUCH * passing[0].chance:
        best = passing[0]
    if not candidates.shows_behaviour:
        return Choice(best)
    changed = _changed_lines(best, start.get(best.path, ""))
    others = [each for each in passing if each is not best and each.chance * MUCH > best.chance]
    others = sorted(others, key=lambda each: -each.chance)[:MOST_COMPARED]
    others += await _edges(candidates, files, best, changed)
    if not others:
        return Choice(best)
    # Those that were changed come first: others may take all of the time.
    ordered = sorted(find_functions(best.path, best.text), key=lambda each: not any(map(each.holds, changed)))
    functions = [(best.path, each.full_name) for each in ordered]
    known = await candidates.behaviour({**files, best.path: best.text}, functions)
    for other in others:
        there = await candidates.behaviour({**files, other.path: other.text}, functions)
        if found := first_difference(known, there):
            return Choice(
                best, f"`{best.change}` and `{other.change}` both pass the tests, but {found.words}"
            )
    return Choice(best)


def _changed_lines(best: Passing, start: str) -> list[int]:
    before = set(start.splitlines())
    lines = enumerate(best.text.splitlines(), 1)
    return [number for number, line in lines if line.strip() and line.rstrip() not in before]


async def _edges(
    candidates: Candidates, files: Mapping[str, str], best: Passing, changed: Sequence[int]
) -> list[Passing]:
    """The change with another edge in its lines that the tests do not notice, such as `<` for `<=`."""
    lines = best.text.splitlines(keepends=True)
    slips = [
        (number, edit.text)
        for number in changed
        for edit in mutations(best.path, best.text, number)
        if edit.likely >= COMMON and _moves_an_edge(lines[number - 1], edit.text)
    ]
    texts = ["".join([*lines[: number - 1], line, *lines[number:]]) for number, line in slips[:MOST_EDGES]]
    hopeful = set(range(len(texts)))
    if candidates.screens and texts:
        screened = await candidates.screen(files, best.path, texts, (), EDGE_SECONDS)
        hopeful -= {number for number, result in screened.items() if not result.all_passed}
    found: list[Passing] = []
    end = time.monotonic() + EDGE_SECONDS
    for number in sorted(hopeful):
        if time.monotonic() > end or len(found) >= MOST_COMPARED:
            break
        line, text = slips[number][1], texts[number]
        if (await candidates.test({**files, best.path: text})).passed:
            found.append(Passing(best.path, text, line.strip(), best.chance))
    return found


def _moves_an_edge(line: str, other: str) -> bool:
    """Whether two lines differ only in comparisons and numbers."""
    one, two = (Counter(found[0] for found in PIECE.finditer(each)) for each in (line, other))
    changed = (one - two) + (two - one)
    return bool(changed) and all(piece in EDGES or piece.isdigit() for piece in changed)
