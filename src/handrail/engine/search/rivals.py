"""Whether the tests decide between a change that passes and others that pass too."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from handrail.engine.search.policy import Line, Question, Situation, chance
from handrail.engine.search.source import find_functions
from handrail.protocol.events import CandidateTried
from handrail.verification.behaviour.behaviour import first_difference
from handrail.verification.candidates import Candidates

MUCH = 4.0
"""How many times likelier, by the model, one of two changes must be to be chosen."""
MOST_COMPARED = 4


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
    """Two changes that pass, and an input for which they differ; empty where one of them is clearly likelier
    or none differs."""


def likelihood(now: Situation, question: Question, tried: CandidateTried) -> float:
    """How likely the model finds a change."""
    line = Line(question.path, question.line)
    weighed = now.branches.get(line, ())
    if question.kind == "mutation":
        return chance(weighed, question.prefix)
    if question.kind == "line" and weighed:
        return chance(weighed, now.written.get(line, {}).get(question.prefix, ""))
    return WRITTEN_WARM if tried.temperature else WRITTEN_FREELY


async def choose(candidates: Candidates, files: Mapping[str, str], passing: Sequence[Passing]) -> Choice:
    """The likeliest of the changes, each on top of these files; the first of those that are as likely."""
    best = max(passing, key=lambda each: each.chance)
    if best.chance < MUCH * passing[0].chance:
        best = passing[0]
    others = [each for each in passing if each is not best and each.chance * MUCH > best.chance]
    if not others:
        return Choice(best)
    functions = [(best.path, each.full_name) for each in find_functions(best.path, best.text)]
    known = await candidates.behaviour({**files, best.path: best.text}, functions)
    for other in sorted(others, key=lambda each: -each.chance)[:MOST_COMPARED]:
        there = await candidates.behaviour({**files, other.path: other.text}, functions)
        if found := first_difference(known, there):
            return Choice(
                best, f"`{best.change}` and `{other.change}` both pass the tests, but {found.words}"
            )
    return Choice(best)
