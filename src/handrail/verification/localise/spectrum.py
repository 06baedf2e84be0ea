"""Rank lines by how suspicious they are: those that failing tests run and passing tests do not (Ochiai).

Coverage alone gives many lines the same score, since all lines of a branch run together. Of those come first
the lines of the error's stack, then lines that compute something, then those that ran last.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from math import sqrt
from typing import NamedTuple

from handrail.tools.reports.issue import Suspect
from handrail.verification.localise.line_kinds import ReadKinds
from handrail.workspace.test_files import is_test_file

MOST = 5
ALIKE = 0.5  # the share of their lines that two tests have in common if they fail for the same reason
Line = tuple[str, int]
"""A path and a number. A negative one is a function within that line: it may not run when the line does."""


class TracedTest(NamedTuple):
    name: str
    failed: bool
    lines: tuple[Line, ...]
    """In the order in which they first ran."""
    stack: tuple[Line, ...] = ()
    """Where the error was raised, innermost first."""


class Use(NamedTuple):
    """Lines of a file that use a value which was set when this or another file was loaded."""

    value: Line
    lines: frozenset[Line]


Positions = Mapping[Line, float]
"""The lines that a test ran, each with its place in their order."""


def find_suspects(
    tests: Sequence[TracedTest], kinds_of: ReadKinds, most: int = MOST
) -> dict[str, tuple[Suspect, ...]]:
    """For each failing test, the lines that are most likely the reason, best first."""
    uses: dict[str, list[Use]] = {}
    ran = {each.name: _positions(each, kinds_of, uses) for each in tests}
    failing = [each for each in tests if each.failed]
    passed = Counter(line for each in tests if not each.failed for line in ran[each.name])
    found = {}
    for test in failing:
        own = ran[test.name]
        raised = _raised_at(test)
        group = [each for each in failing if _raised_at(each) == raised and _alike(ran[each.name], own)]
        failed = Counter(line for each in group for line in ran[each.name])
        depths = {line: depth for depth, line in reversed([*enumerate(test.stack)])}
        ranked = []
        for line, position in own.items():
            place = line[0], abs(line[1])
            if (weight := kinds_of(place[0]).weights.get(place[1])) is not None:
                score = failed[line] / sqrt(len(group) * (failed[line] + passed[line]))
                order = (-round(score, 6), depths.get(place, len(depths)), -weight, -position)
                ranked.append((order, place, score))
        best: dict[Line, float] = {}
        for _, place, score in sorted(ranked):
            best.setdefault(place, score)
        suspects = (Suspect(path, line, round(score, 3)) for (path, line), score in best.items())
        found[test.name] = tuple(islice(suspects, most))
    return found


def _positions(test: TracedTest, kinds_of: ReadKinds, uses: dict[str, list[Use]]) -> Positions:
    """A value that was set when a file was loaded counts as run where a line first uses it."""
    found: dict[Line, float] = {
        line: place for place, line in enumerate(test.lines) if not is_test_file(line[0])
    }
    for path in dict.fromkeys(path for path, _ in found):
        if path not in uses:
            uses[path] = _uses(path, kinds_of)
        for use in uses[path]:
            if ran := [found[line] for line in use.lines if line in found]:
                found.setdefault(use.value, min(ran) - 0.5)
    return found


def _uses(path: str, kinds_of: ReadKinds) -> list[Use]:
    kinds = kinds_of(path)
    return [
        Use((other, line), frozenset((path, each) for each in kinds.reads[name]))
        for other in dict.fromkeys((path, *kinds.imports))
        for name, lines in kinds_of(other).constants.items()
        if name in kinds.reads
        for line in lines
    ]


def _raised_at(test: TracedTest) -> Line | None:
    """The line of the program that raised the error; None if the test itself did, as for a wrong result."""
    return next((line for line in test.stack[:1] if not is_test_file(line[0])), None)


def _alike(one: Positions, other: Positions) -> bool:
    both = len(one.keys() & other.keys())
    return both >= ALIKE * (len(one) + len(other) - both)
