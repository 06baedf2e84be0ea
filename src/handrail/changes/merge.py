"""Three-way merge of texts, line by line."""

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from handrail.changes.diff import changed_span

MAX_LINES = 20_000
"""Comparing longer texts would take too long."""


class Clash(NamedTuple):
    line: int
    """Where they begin in `ours`, from 1."""
    base: bytes
    ours: bytes
    theirs: bytes


class Merged(NamedTuple):
    data: bytes
    """The merged text, with `ours` where there are clashes."""
    clashes: tuple[Clash, ...]


class Region(NamedTuple):
    """Lines `start` to `end` of the base became `first` to `last` of one side."""

    start: int
    end: int
    first: int
    last: int


Settle = Callable[[Clash], bytes | None]
"""What stands in place of both sides of a clash; None: nobody has decided."""


def merge(base: bytes, ours: bytes, theirs: bytes, *, settle: Settle = lambda _clash: None) -> Merged | None:
    """The text with the changes of both sides; None where they cannot be compared by lines."""
    texts = [_lines(text) for text in (base, ours, theirs)]
    if any(b"\0" in text for text in (base, ours, theirs)) or max(map(len, texts)) > MAX_LINES:
        return None
    return _merge(texts[0], texts[1], texts[2], settle)


def _merge(base: list[bytes], ours: list[bytes], theirs: list[bytes], settle: Settle) -> Merged:
    parts: list[bytes] = []
    clashes: list[Clash] = []
    at = 0
    for mine, other in _overlaps(_changed(base, ours), _changed(base, theirs)):
        start = min(region.start for region in (*mine, *other))
        end = max(region.end for region in (*mine, *other))
        parts += base[at:start]
        was = b"".join(base[start:end])
        one = b"".join(_side(mine, start, end, base, ours))
        two = b"".join(_side(other, start, end, base, theirs))
        if one == was:
            parts.append(two)
        elif two in (one, was):
            parts.append(one)
        else:
            clash = Clash(mine[0].first - (mine[0].start - start) + 1, was, one, two)
            settled = settle(clash)
            parts.append(one if settled is None else settled)
            clashes += [clash] if settled is None else []
        at = end
    parts += base[at:]
    return Merged(b"".join(parts), tuple(clashes))


def _side(
    regions: Sequence[Region], start: int, end: int, base: Sequence[bytes], side: Sequence[bytes]
) -> list[bytes]:
    """What lines `start` to `end` of the base became on one side."""
    lines: list[bytes] = []
    at = start
    for region in regions:
        lines += [*base[at : region.start], *side[region.first : region.last]]
        at = region.end
    return [*lines, *base[at:end]]


def _overlaps(
    ours: list[Region], theirs: list[Region]
) -> Iterator[tuple[tuple[Region, ...], tuple[Region, ...]]]:
    """Changes of both sides in order, those that touch one another grouped."""
    both = [(region, 0) for region in ours] + [(region, 1) for region in theirs]
    group: tuple[list[Region], list[Region]] = ([], [])
    end = -1
    for region, side in sorted(both, key=lambda item: (item[0].start, item[0].end)):
        # Touching counts: two insertions at one place have no known order.
        if end >= 0 and region.start > end:
            yield tuple(group[0]), tuple(group[1])
            group = ([], [])
        group[side].append(region)
        end = max(end, region.end)
    if group[0] or group[1]:
        yield tuple(group[0]), tuple(group[1])


def _changed(base: list[bytes], side: list[bytes]) -> list[Region]:
    head, end_base, end_side = changed_span(base, side)
    matcher = SequenceMatcher(isjunk=None, a=base[head:end_base], b=side[head:end_side], autojunk=False)
    return [
        Region(start + head, end + head, first + head, last + head)
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def _lines(text: bytes) -> list[bytes]:
    *lines, last = text.split(b"\n")
    return [*(line + b"\n" for line in lines), *([last] if last else [])]
