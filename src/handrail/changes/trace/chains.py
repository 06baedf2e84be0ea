"""Chains that this log knows nothing of, such as those of others who share the repository."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from handrail.changes.trace.aligning import increasing
from handrail.changes.trace.findings import Finding


class Link(NamedTuple):
    """A line of a chain as it says itself."""

    place: int
    """Its line in the file, from 1."""
    number: int
    before: str
    sha256: str


def check_chain(writer: str, links: Sequence[Link]) -> list[Finding]:
    """What is wrong with the lines of one writer, given as they stand in the file."""
    found: list[Finding] = []
    best: dict[int, Link] = {}
    expected = {link.number - 1: link.before for link in links}
    for link in links:
        other = best.get(link.number)
        if other is None or (expected.get(link.number) == link.sha256 != other.sha256):
            best[link.number] = link
        if other is not None:
            worse = other if best[link.number] is link else link
            found.append(Finding(worse.place, "forged", f"a second line {link.number} of {writer}"))
    chain = sorted(((link.number, link.place) for link in best.values()), key=lambda each: each[1])
    return [*found, *out_of_order(writer, chain), *_gaps(writer, best), *_hashes(writer, best)]


def out_of_order(writer: str, chain: Sequence[tuple[int, int]]) -> list[Finding]:
    """The fewest lines that stand where they should not; each is its number and its place in the file."""
    right = set(increasing(chain))
    what = f"of {writer} stands neither before nor after the right ones"
    return [
        Finding(place, "reordered", f"number {number} {what}")
        for number, place in chain
        if (number, place) not in right
    ]


def _gaps(writer: str, best: Mapping[int, Link]) -> list[Finding]:
    found = []
    for number, link in sorted(best.items()):
        if number > 1 and number - 1 not in best:
            first = max((each for each in best if each < number), default=0) + 1
            gone = f"number {first}" if first == number - 1 else f"numbers {first} to {number - 1}"
            found.append(Finding(link.place, "removed", f"{gone} of {writer} should stand before it"))
    return found


def _hashes(writer: str, best: Mapping[int, Link]) -> list[Finding]:
    """Lines whose content does not fit the hashes around it."""
    broken = {
        number
        for number, link in best.items()
        if (number == 1 and link.before) or (number - 1 in best and best[number - 1].sha256 != link.before)
    }
    return [_finding(writer, best, run) for run in _runs(sorted(broken))]


def _finding(writer: str, best: Mapping[int, Link], run: Sequence[int]) -> Finding:
    first, last = run[0], run[-1]
    if len(run) > 1 or first == 1:
        # A line that fits neither neighbour makes two breaks in a row; a first line has only itself.
        place = best[max(1, last - 1)].place
        return Finding(place, "edited", f"it does not fit the lines of {writer} around it")
    before, after = best[first - 1].place, best[first].place
    if first + 1 in best:
        return Finding(before, "edited", f"line {after}, the next of {writer}, has another hash of it")
    what = f"it or line {after}, the last of {writer}: the hash of the one is not in the other"
    return Finding(before, "edited", what)


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs
