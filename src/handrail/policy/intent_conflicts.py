"""Which intents own the same files or wait for each other."""

import hashlib
import json
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product, takewhile
from typing import NamedTuple

from handrail.protocol.globs import Name, Segment, parse_pattern, plain_name
from handrail.protocol.intent import Intent

MAX_STATES = 2_000
"""Limit of the search; beyond it, the scopes are taken to overlap."""
UNKNOWN_PATH = "?"
"""The common path where the search reached its limit."""
OTHER_LETTER = "\ue001"
"""A letter that no pattern contains."""

Pattern = tuple[Segment, ...]
Spelled = tuple[tuple[Name, ...] | None, ...]
"""A pattern whose segments are all lists of alternative names; None is `**`."""
Position = tuple[int, int, int]
"""A position in a pattern: segment, spelling of it, letters read. Spelling -1: before the segment."""
NOTHING_SETTLED: Mapping[str, str] = {}


def overlap(one: Sequence[str], other: Sequence[str]) -> str:
    """A path that both scopes own; empty if there is none, `?` if the search reached its limit."""
    owned, denied = _split_scope(one)
    other_owned, other_denied = _split_scope(other)
    for first, second in product(owned, other_owned):
        if _may_meet(first, second) and (found := _common(first, second, (*denied, *other_denied))):
            return found
    return ""


def _split_scope(scope: Iterable[str]) -> tuple[list[Pattern], list[Pattern]]:
    owned: list[Pattern] = []
    denied: list[Pattern] = []
    for pattern in (each.strip() for each in scope):
        if pattern.startswith("!"):
            found = parse_pattern(pattern[1:].lstrip())
            if found is None:
                return [], []  # such a scope owns nothing
            denied += found
        else:
            owned += parse_pattern(pattern) or ()
    return owned, denied


def _may_meet(one: Pattern, other: Pattern) -> bool:
    """Quick check: whether the literal names at the start of both agree."""
    pairs = zip(one, other, strict=False)
    literal = takewhile(lambda pair: isinstance(pair[0], str) and isinstance(pair[1], str), pairs)
    return all(first == second for first, second in literal)


@lru_cache(maxsize=4096)
def _common(one: Pattern, other: Pattern, denied: tuple[Pattern, ...]) -> str:
    """A path that both match and no denied pattern does: a breadth-first search over all automata at once."""
    patterns: tuple[Spelled, ...] = tuple(
        tuple((plain_name(each),) if isinstance(each, str) else each for each in pattern)
        for pattern in (one, other, *denied)
    )
    names = (name for pattern in patterns for segment in pattern for name in segment or ())
    named = {letter for name in names for character in name for letter in character.among}
    letters = (*sorted(named - {"/"}), OTHER_LETTER, "/")
    start = tuple(_closure(each, {(0, -1, 0)}) for each in patterns)
    seen, waiting = {start}, deque([(start, "")])
    while waiting:
        states, path = waiting.popleft()
        first, second, *others = map(_ended, patterns, states)
        if first and second and not any(others) and _is_path(path):
            return path
        for letter in letters:
            if letter == "/" and not _is_path(path):
                continue
            after = tuple(_step(each, state, letter) for each, state in zip(patterns, states, strict=True))
            if after[0] and after[1] and after not in seen:
                seen.add(after)
                waiting.append((after, path + letter))
        if len(seen) > MAX_STATES:
            return UNKNOWN_PATH
    return ""


def _is_path(path: str) -> bool:
    """Whether the last name can be a file's."""
    return path.rpartition("/")[2] not in ("", ".", "..")


def _closure(pattern: Spelled, places: Iterable[Position]) -> frozenset[Position]:
    """All positions reached without reading a letter: `**` may match no folder, `*` no letter."""
    found: set[Position] = set()
    waiting = list(places)
    while waiting:
        place = waiting.pop()
        if place in found:
            continue
        found.add(place)
        number, spelling, used = place
        if spelling == -1:
            if number < len(pattern):
                waiting += _segment_starts(pattern, number)
            continue
        name = _name(pattern, number, spelling)
        if name is not None and used < len(name) and name[used].any_number:
            waiting.append((number, spelling, used + 1))
    return frozenset(found)


def _segment_starts(pattern: Spelled, number: int) -> list[Position]:
    """The positions where reading a segment starts; `**` may also be skipped."""
    segment = pattern[number]
    if segment is None:
        skipped = [(number + 1, -1, 0)] if number + 1 < len(pattern) else []
        return [(number, 0, 0), *skipped]
    return [(number, spelling, 0) for spelling in range(len(segment))]


def _name(pattern: Spelled, number: int, spelling: int) -> Name | None:
    segment = pattern[number]
    return None if segment is None else segment[spelling]


def _step(pattern: Spelled, places: frozenset[Position], letter: str) -> frozenset[Position]:
    after: set[Position] = set()
    for place in places:
        number, spelling, used = place
        if spelling == -1:
            continue
        name = _name(pattern, number, spelling)
        if letter == "/":
            if name is None:
                after.add((number, -1, 0))
            if (name is None or used == len(name)) and number + 1 < len(pattern):
                after.add((number + 1, -1, 0))
        elif name is None:
            after.add((number, 0, 1))
        elif used < len(name) and (name[used].any_number or name[used].fits(letter)):
            after.add((number, spelling, used + (not name[used].any_number)))
    return _closure(pattern, after)


def _ended(pattern: Spelled, places: frozenset[Position]) -> bool:
    for number, spelling, used in places:
        if number == len(pattern) - 1 and spelling != -1:
            name = _name(pattern, number, spelling)
            if used if name is None else used == len(name):
                return True
    return False


class Conflict(NamedTuple):
    """Two open intents that own the same path, neither waiting for the other."""

    one: str
    other: str
    path: str
    scopes: str
    """Hash of both scopes: what the user decides about the conflict is stored under it."""

    @property
    def message(self) -> str:
        where = "the same files" if self.path == UNKNOWN_PATH else f"files such as {self.path}"
        return f"{self.one} and {self.other} both own {where}."


def unmet_dependencies(intent: Intent, intents: Sequence[Intent]) -> tuple[str, ...]:
    """A sentence for each dependency of an intent that is missing or not done."""
    known = {each.id: each for each in intents}
    unmet = []
    for each in intent.depends_on:
        if each not in known or not known[each].done:
            problem = "is not done" if each in known else "does not exist"
            unmet.append(f"{intent.id} depends on {each}, which {problem}.")
    return tuple(unmet)


def conflicts(
    intents: Sequence[Intent],
    *,
    of: str = "",
    ignored: Collection[str] = (),
    settled: Mapping[str, str] = NOTHING_SETTLED,
) -> list[Conflict]:
    """The conflicts of one intent, or all, except those the user accepted."""
    active = [each for each in intents if not each.done and each.id not in ignored]
    known = {each.id: each for each in intents}
    found = []
    for one, other in combinations(active, 2):
        if of and of not in (one.id, other.id):
            continue
        if _depends_on(one.id, other.id, known) or _depends_on(other.id, one.id, known):
            continue
        if path := overlap(one.scope, other.scope):
            conflict = Conflict(one.id, other.id, path, scopes_hash(one, other))
            if settled.get(conflict.scopes) != "accepted":
                found.append(conflict)
    return found


def ordering_command(conflict: Conflict, intents: Sequence[Intent]) -> str:
    """The command that makes the second intent wait for the first, besides what it already waits for."""
    before = [each for intent in intents if intent.id == conflict.other for each in intent.depends_on]
    value = ",".join(dict.fromkeys((*before, conflict.one)))
    return f"handrail intents edit {conflict.other} --set depends_on={value}"


def scopes_hash(one: Intent, other: Intent) -> str:
    pair = sorted([each.id, *each.scope] for each in (one, other))
    return hashlib.sha256(json.dumps(pair).encode()).hexdigest()


def dependency_cycles(intents: Sequence[Intent]) -> list[str]:
    known = {each.id: each for each in intents}
    return [each.id for each in intents if _depends_on(each.id, each.id, known)]


def _depends_on(one: str, other: str, known: Mapping[str, Intent]) -> bool:
    """Whether one depends on the other, directly or not."""
    waiting, seen = [one], set[str]()
    while waiting:
        for each in known[waiting.pop()].depends_on:
            if each == other:
                return True
            if each in known and each not in seen:
                seen.add(each)
                waiting.append(each)
    return False
