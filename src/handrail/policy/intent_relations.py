"""How intents stand to one another: which waits for which, and which own the same files."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from handrail.policy.overlap import SOMEWHERE, overlap
from handrail.protocol.intent import Intent

NO_WORD: Mapping[str, str] = {}


class Conflict(NamedTuple):
    """Two intents that are not done, of which neither waits for the other, and a path that both own."""

    one: str
    other: str
    path: str
    scopes: str
    """Hash of both scopes, by which the user's word to it is remembered."""

    @property
    def told(self) -> str:
        where = "the same files" if self.path == SOMEWHERE else f"files such as {self.path}"
        return f"{self.one} and {self.other} both own {where}."


def unmet(intent: Intent, intents: Sequence[Intent]) -> tuple[str, ...]:
    """In words: the dependencies of an intent that are not done."""
    known = {each.id: each for each in intents}
    told = []
    for each in intent.depends_on:
        if each not in known:
            told.append(f"{intent.id} depends on {each}, which does not exist.")
        elif not known[each].done:
            told.append(f"{intent.id} depends on {each}, which is not done.")
    return tuple(told)


def conflicts(
    intents: Sequence[Intent],
    *,
    of: str = "",
    ignored: Collection[str] = (),
    settled: Mapping[str, str] = NO_WORD,
) -> list[Conflict]:
    """Those of one intent, or all, but for what the user has accepted."""
    active = [each for each in intents if not each.done and each.id not in ignored]
    known = {each.id: each for each in intents}
    found = []
    for one, other in combinations(active, 2):
        if of and of not in (one.id, other.id):
            continue
        if _waits(one.id, other.id, known) or _waits(other.id, one.id, known):
            continue
        if path := overlap(one.scope, other.scope):
            conflict = Conflict(one.id, other.id, path, scopes_hash(one, other))
            if settled.get(conflict.scopes) != "accepted":
                found.append(conflict)
    return found


def put_behind(conflict: Conflict, intents: Sequence[Intent]) -> str:
    """The command with which the second of two intents waits for the first, and for what it waited before."""
    before = [each for intent in intents if intent.id == conflict.other for each in intent.depends_on]
    value = ",".join(dict.fromkeys((*before, conflict.one)))
    return f"handrail intents edit {conflict.other} --set depends_on={value}"


def scopes_hash(one: Intent, other: Intent) -> str:
    pair = sorted([each.id, *each.scope] for each in (one, other))
    return hashlib.sha256(json.dumps(pair).encode()).hexdigest()


def circles(intents: Sequence[Intent]) -> list[str]:
    """Ids of intents that wait for themselves."""
    known = {each.id: each for each in intents}
    return [each.id for each in intents if _waits(each.id, each.id, known)]


def _waits(one: str, other: str, known: Mapping[str, Intent]) -> bool:
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
