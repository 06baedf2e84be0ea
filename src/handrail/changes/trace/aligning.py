"""Which lines of a text are those of an earlier one: lines that occur once in both hold the rest in place."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from handrail.changes.diff import alike

SMALL = 400
"""Lines of both sides that are compared one by one."""
LARGE = 4_000
"""Beyond this, lines that occur often no longer count as places to begin."""


class Same(NamedTuple):
    """A stretch that stayed: where it begins before and after, and its lines."""

    before: int
    after: int
    length: int


class Part(NamedTuple):
    """A stretch of both texts, the ends not included."""

    first: int
    last: int
    start: int
    end: int


def same_lines(before: Sequence[bytes], after: Sequence[bytes]) -> list[Same]:
    """The stretches that both texts have, in order."""
    return list(_joined(_between(before, after, Part(0, len(before), 0, len(after)))))


def _between(before: Sequence[bytes], after: Sequence[bytes], part: Part) -> Iterator[Same]:
    a, b, c, d = part
    if head := alike(before[a:b], after[c:d]):
        yield Same(a, c, head)
        a, c = a + head, c + head
    tail = alike(before[a:b][::-1], after[c:d][::-1])
    b, d = b - tail, d - tail
    if a < b and c < d:
        anchors = _anchors(before[a:b], after[c:d]) if b - a + d - c > SMALL else []
        if anchors:
            first, second = a, c
            for one, two in anchors:
                yield from _between(before, after, Part(first, a + one, second, c + two))
                yield Same(a + one, c + two, 1)
                first, second = a + one + 1, c + two + 1
            yield from _between(before, after, Part(first, b, second, d))
        else:
            often = b - a + d - c > LARGE
            matcher = SequenceMatcher(isjunk=None, a=before[a:b], b=after[c:d], autojunk=often)
            for block in matcher.get_matching_blocks():
                if block.size:
                    yield Same(a + block.a, c + block.b, block.size)
    if tail:
        yield Same(b, d, tail)


def _anchors(before: Sequence[bytes], after: Sequence[bytes]) -> list[tuple[int, int]]:
    """Lines that occur once on each side, the most of them that stand in the same order on both."""
    counted = Counter(before)
    once_after = {line for line, times in Counter(after).items() if times == 1}
    places = {line: at for at, line in enumerate(before) if counted[line] == 1 and line in once_after}
    pairs = [(places[line], at) for at, line in enumerate(after) if line in places]
    return increasing(pairs)


def increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest choice of pairs whose first numbers increase as the second do."""
    ends: list[int] = []
    at_end: list[int] = []
    previous: list[int] = []
    for number, (one, _) in enumerate(pairs):
        place = bisect_left(ends, one)
        previous.append(at_end[place - 1] if place else -1)
        ends[place : place + 1] = [one]
        at_end[place : place + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = at_end[-1] if at_end else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = previous[number]
    return chosen[::-1]


def _joined(found: Iterator[Same]) -> Iterator[Same]:
    """Neighbours as one stretch."""
    last: Same | None = None
    for each in found:
        if last and (last.before + last.length, last.after + last.length) == each[:2]:
            last = last._replace(length=last.length + each.length)
            continue
        if last:
            yield last
        last = each
    if last:
        yield last
