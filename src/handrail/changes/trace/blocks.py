"""Lines as the trace compares them, and the blocks of new ones that a change brings."""

import hashlib
from collections.abc import Iterator, Sequence

from handrail.changes.diff import alike
from handrail.changes.trace.aligning import Same, same_lines
from handrail.protocol.values import ChangedRange

SHORTEST = 8
"""A run of new lines is cut at blank lines into blocks of at least so many, each found again by itself."""
MOST = 200
DIGITS = 32


def keys_of(data: bytes | None) -> list[bytes]:
    """The lines of a text, white space aside; none where it is no text."""
    if not data or b"\0" in data:
        return []
    return [b" ".join(line.split()) for line in data.removesuffix(b"\n").split(b"\n")]


def block_hash(keys: Sequence[bytes]) -> str:
    """What tells a block of lines from any other."""
    return hashlib.sha256(b"\n".join(keys)).hexdigest()[:DIGITS]


def changed_ranges(old: bytes | None, new: bytes | None) -> tuple[ChangedRange, ...]:
    """The lines of a new content that are not in the old one, in blocks."""
    begin, before, later = _differing(old, new)
    after = keys_of(later)
    runs = new_runs(same_lines(keys_of(before), after), len(after))
    shortest = SHORTEST
    while len(found := [block for run in runs for block in _blocks(after, *run, shortest)]) > MOST:
        if shortest > len(after):
            found = [(found[0][0], found[-1][1])]
            break
        shortest *= 2
    return tuple(
        ChangedRange(start=begin + start + 1, end=begin + end, sha256=block_hash(after[start:end]))
        for start, end in found
    )


def _differing(old: bytes | None, new: bytes | None) -> tuple[int, bytes | None, bytes | None]:
    """What is between the lines that two texts begin and end with, and how many lines come before it.

    Most changes are small, and looking at every line of a large file takes longer than all the rest of one.
    """
    if not old or not new or b"\0" in new or b"\0" in old:
        return 0, old, new
    begin = old.rfind(b"\n", 0, alike(old, new)) + 1
    size = alike(old[begin:][::-1], new[begin:][::-1])
    broken = old.find(b"\n", len(old) - size)
    size = len(old) - broken - 1 if broken >= 0 else 0
    return new.count(b"\n", 0, begin), old[begin : len(old) - size], new[begin : len(new) - size]


def new_runs(same: Sequence[Same], length: int) -> list[tuple[int, int]]:
    """Stretches of the later text that are not the same as before."""
    runs, at = [], 0
    for each in (*same, Same(0, length, 0)):
        if each.after > at:
            runs.append((at, each.after))
        at = each.after + each.length
    return runs


def _blocks(keys: Sequence[bytes], start: int, end: int, shortest: int) -> Iterator[tuple[int, int]]:
    begun = start
    for at in range(start, end):
        if not keys[at] and at - begun >= shortest and end - at > shortest:
            yield begun, at + 1
            begun = at + 1
    yield begun, end
