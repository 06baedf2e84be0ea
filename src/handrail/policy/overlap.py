"""Do two scopes own a common path? Found by walking both at once, name by name and letter by letter."""

from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache

from handrail.policy.scope import Character, Name, Segment, spelled_out

MOST_STATES = 2_000
"""States of a walk; where more are needed, the answer is the careful one."""
SOMEWHERE = "?"
"""What is given as common path where none was found in time."""
OTHER = "\ue001"
"""A letter that no pattern has."""

Spelled = tuple[Segment, ...]
Place = tuple[int, int, int]
"""Where a pattern is: in which segment, in which of its spellings, how many letters of it are used up.

-1 for a spelling: between two names, before this segment.
"""


def overlap(one: Sequence[str], other: Sequence[str]) -> str:
    """A path that both scopes own; empty where there is none, `?` where it could not be found in time."""
    owned, denied = _parted(one)
    also, not_that = _parted(other)
    left_out = (*denied, *not_that)
    for first in owned:
        for second in also:
            if not _may_meet(first, second):
                continue
            if found := _common(first, second, tuple(left_out)):
                return found
    return ""


def _parted(scope: Iterable[str]) -> tuple[list[Spelled], list[Spelled]]:
    owned: list[Spelled] = []
    denied: list[Spelled] = []
    for pattern in (each.strip() for each in scope):
        if pattern.startswith("!"):
            found = spelled_out(pattern[1:].lstrip())
            if found is None:
                return [], []  # such a scope owns nothing
            denied += found
        else:
            owned += spelled_out(pattern) or ()
    return owned, denied


def _may_meet(one: Spelled, other: Spelled) -> bool:
    """Quick: whether the plain names that both begin with are the same."""
    for first, second in zip(one, other, strict=False):
        if first is None or second is None or not (isinstance(first, str) and isinstance(second, str)):
            return True
        if first != second:
            return False
    return True


@lru_cache(maxsize=4096)
def _common(one: Spelled, other: Spelled, left_out: tuple[Spelled, ...]) -> str:
    patterns = (one, other, *left_out)
    letters = _letters(patterns)
    start = tuple(_closed(each, {(0, -1, 0)}) for each in patterns)
    seen, waiting = {start}, deque([(start, "")])
    while waiting:
        states, path = waiting.popleft()
        if path and path[-1] != "/" and _accepted(patterns, states) and _is_path(path):
            return path
        for letter in letters:
            if letter == "/" and (not path or path.endswith("/") or not _is_path(path)):
                continue
            after = tuple(_step(each, state, letter) for each, state in zip(patterns, states, strict=True))
            if after[0] and after[1] and after not in seen:
                seen.add(after)
                waiting.append((after, path + letter))
        if len(seen) > MOST_STATES:
            return SOMEWHERE
    return ""


def _is_path(path: str) -> bool:
    """Whether the last name can be one of a file."""
    return path.rpartition("/")[2] not in ("", ".", "..")


def _accepted(patterns: Sequence[Spelled], states: Sequence[frozenset[Place]]) -> bool:
    ended = [_ended(pattern, state) for pattern, state in zip(patterns, states, strict=True)]
    return ended[0] and ended[1] and not any(ended[2:])


def _letters(patterns: Iterable[Spelled]) -> tuple[str, ...]:
    """One of each letter that some pattern tells from others, and one that none does."""
    found: set[str] = set()
    for segment in (segment for pattern in patterns for segment in pattern):
        if isinstance(segment, str):
            found |= set(segment)
        for name in segment if isinstance(segment, tuple) else ():
            for character in name:
                found |= character.among
    return (*sorted(found - {"/"}), OTHER, "/")


def _closed(pattern: Spelled, places: Iterable[Place]) -> frozenset[Place]:
    """With all places that are reached without a letter: `**` may stand for no folder, `*` for no letter."""
    found: set[Place] = set()
    waiting = list(places)
    while waiting:
        place = waiting.pop()
        if place in found:
            continue
        found.add(place)
        number, spelling, used = place
        if spelling == -1:
            if number < len(pattern):
                waiting += _begun(pattern, number)
            continue
        name = _name(pattern, number, spelling)
        if name is not None and used < len(name) and name[used].any_number:
            waiting.append((number, spelling, used + 1))
    return frozenset(found)


def _begun(pattern: Spelled, number: int) -> list[Place]:
    """The places from which a segment is read; one that spans folders may also be passed by."""
    segment = pattern[number]
    if segment is None:
        passed = [(number + 1, -1, 0)] if number + 1 < len(pattern) else []
        return [(number, 0, 0), *passed]
    return [(number, spelling, 0) for spelling in range(1 if isinstance(segment, str) else len(segment))]


def _name(pattern: Spelled, number: int, spelling: int) -> Name | None:
    segment = pattern[number]
    if isinstance(segment, str):
        return _plain(segment)
    return None if segment is None else segment[spelling]


@lru_cache(maxsize=1024)
def _plain(text: str) -> Name:
    return tuple(Character(frozenset(letter), negated=False) for letter in text)


def _step(pattern: Spelled, places: frozenset[Place], letter: str) -> frozenset[Place]:
    after: set[Place] = set()
    for place in places:
        number, spelling, used = place
        if spelling == -1:
            continue
        name = _name(pattern, number, spelling)
        if letter == "/":
            if name is None:
                after |= {(number, -1, 0), *([(number + 1, -1, 0)] if number + 1 < len(pattern) else [])}
            elif used == len(name) and number + 1 < len(pattern):
                after.add((number + 1, -1, 0))
        elif name is None:
            after.add((number, 0, 1))
        elif used < len(name) and (name[used].any_number or name[used].fits(letter)):
            after.add((number, spelling, used + (not name[used].any_number)))
    return _closed(pattern, after)


def _ended(pattern: Spelled, places: frozenset[Place]) -> bool:
    last = len(pattern) - 1
    for number, spelling, used in places:
        if number != last or spelling == -1:
            continue
        name = _name(pattern, number, spelling)
        if used and name is None:
            return True
        if name is not None and used == len(name):
            return True
    return False
