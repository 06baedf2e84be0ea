"""Align the lines of two versions, and hash the blocks of lines that a change adds."""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from handrail.changes.diff import common_prefix
from handrail.protocol.values import ChangedRange

SMALL_LINES = 400  # up to this many lines of both sides are compared one by one
LARGE_LINES = 4_000  # beyond this, lines that occur often are not used as anchors


class SameLines(NamedTuple):
    """Unchanged lines: where they begin before and after, and how many they are."""

    before: int
    after: int
    length: int


def align_lines(before: Sequence[bytes], after: Sequence[bytes]) -> list[SameLines]:
    """The runs of lines that both texts have, in order; neighbours are joined."""
    runs: list[SameLines] = []
    for run in _align(before, after, (0, len(before), 0, len(after))):
        last = runs[-1] if runs else None
        if last and (last.before + last.length, last.after + last.length) == run[:2]:
            runs[-1] = last._replace(length=last.length + run.length)
        else:
            runs.append(run)
    return runs


def _align(
    before: Sequence[bytes], after: Sequence[bytes], part: tuple[int, int, int, int]
) -> Iterator[SameLines]:
    """The same for a part: lines `a` to `b` of one text and `c` to `d` of the other, ends not included."""
    a, b, c, d = part
    if head := common_prefix(before[a:b], after[c:d]):
        yield SameLines(a, c, head)
        a, c = a + head, c + head
    tail = common_prefix(before[a:b][::-1], after[c:d][::-1])
    b, d = b - tail, d - tail
    if a < b and c < d:
        anchors = _anchors(before[a:b], after[c:d]) if b - a + d - c > SMALL_LINES else []
        if anchors:
            first, second = a, c
            for one, two in anchors:
                yield from _align(before, after, (first, a + one, second, c + two))
                yield SameLines(a + one, c + two, 1)
                first, second = a + one + 1, c + two + 1
            yield from _align(before, after, (first, b, second, d))
        else:
            large = b - a + d - c > LARGE_LINES
            matcher = SequenceMatcher(isjunk=None, a=before[a:b], b=after[c:d], autojunk=large)
            for block in matcher.get_matching_blocks():
                if block.size:
                    yield SameLines(a + block.a, c + block.b, block.size)
    if tail:
        yield SameLines(b, d, tail)


def _anchors(before: Sequence[bytes], after: Sequence[bytes]) -> list[tuple[int, int]]:
    """Lines that occur once on each side: the longest list of them that has the same order on both."""
    counted = Counter(before)
    once_after = {line for line, times in Counter(after).items() if times == 1}
    places = {line: at for at, line in enumerate(before) if counted[line] == 1 and line in once_after}
    pairs = [(places[line], at) for at, line in enumerate(after) if line in places]
    return longest_increasing(pairs)


def longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of pairs whose first numbers increase."""
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


MIN_BLOCK_LINES = 8  # new lines are split at blank lines into blocks of this size, each hashed by itself
MAX_BLOCKS = 200
BLOCK_HASH_DIGITS = 32


def line_keys(data: bytes | None) -> list[bytes]:
    """The lines of a text with white space normalized; none for a binary file."""
    if not data or b"\0" in data:
        return []
    return [b" ".join(line.split()) for line in data.removesuffix(b"\n").split(b"\n")]


def block_hash(keys: Sequence[bytes]) -> str:
    return hashlib.sha256(b"\n".join(keys)).hexdigest()[:BLOCK_HASH_DIGITS]


def changed_ranges(old: bytes | None, new: bytes | None) -> tuple[ChangedRange, ...]:
    """The lines of a new content that are not in the old one, in blocks."""
    begin, before, later = _differing(old, new)
    after = line_keys(later)
    same = align_lines(line_keys(before), after)
    runs = runs_between(((each.after, each.length) for each in same), len(after))
    shortest = MIN_BLOCK_LINES
    while len(found := [block for run in runs for block in blocks(after, *run, shortest)]) > MAX_BLOCKS:
        if shortest > len(after):
            found = [(found[0][0], found[-1][1])]
            break
        shortest *= 2
    return tuple(
        ChangedRange(start=begin + start + 1, end=begin + end, sha256=block_hash(after[start:end]))
        for start, end in found
    )


def _differing(old: bytes | None, new: bytes | None) -> tuple[int, bytes | None, bytes | None]:
    """The part in which two texts differ, in whole lines, and how many lines come before it.

    Most changes are small, and comparing every line of a large file would take longest of all.
    """
    if not old or not new or b"\0" in new or b"\0" in old:
        return 0, old, new
    begin = old.rfind(b"\n", 0, common_prefix(old, new)) + 1
    size = common_prefix(old[begin:][::-1], new[begin:][::-1])
    broken = old.find(b"\n", len(old) - size)
    size = len(old) - broken - 1 if broken >= 0 else 0
    return new.count(b"\n", 0, begin), old[begin : len(old) - size], new[begin : len(new) - size]


def runs_between(same: Iterable[tuple[int, int]], total: int) -> list[tuple[int, int]]:
    """(start, end) of the lines between unchanged ones, which are given as (start, length)."""
    runs, at = [], 0
    for start, length in (*same, (total, 0)):
        if start > at:
            runs.append((at, start))
        at = start + length
    return runs


def blocks(
    keys: Sequence[bytes], start: int, end: int, shortest: int = MIN_BLOCK_LINES
) -> Iterator[tuple[int, int]]:
    """A run of lines, split at blank lines into parts of at least so many lines."""
    for at in range(start, end):
        if not keys[at] and at - start >= shortest and end - at > shortest:
            yield start, at + 1
            start = at + 1
    yield start, end
