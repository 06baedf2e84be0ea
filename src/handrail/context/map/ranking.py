"""Which files matter: those whose definitions are used elsewhere, the rarer the name the more."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nlargest
from typing import NamedTuple

from handrail.context.map.symbols import Definition, Symbols
from handrail.storage.map_cache import Ranked

COMMONEST = 6
"""Files that may define a name: one that more define, such as `run`, says nothing about where it is meant."""
UNCLEAR = 0.2
"""What the use of a private name counts, or of a plain word, which may well mean something else."""
NEAR = 8
"""Files kept of those that a file uses, and of those that use it."""
OUTLINE = 130
"""Characters that a file's line of names has."""
MEMBERS = 6


class Source(NamedTuple):
    """A file as ranking sees it."""

    path: str
    family: str
    """Files of different families do not use each other's names."""
    symbols: Symbols


class Weights(dict[str, float]):
    """How much, by name."""

    def add(self, name: str, weight: float) -> None:
        self[name] = self.get(name, 0.0) + weight

    def most(self) -> dict[str, float]:
        return {name: round(self[name], 2) for name in nlargest(NEAR, self, key=self.__getitem__)}


def rank(sources: Callable[[], Iterable[Source]]) -> Iterator[Ranked]:
    """A row for every file that defines something; the sources are gone through thrice, one at a time."""
    defined: dict[tuple[str, str], list[str]] = defaultdict(list)
    used_by: Counter[tuple[str, str]] = Counter()
    for path, family, symbols in sources():
        for name in {definition.name for definition in symbols.definitions}:
            if not name.startswith("__"):
                defined[family, name].append(path)
        used_by.update((family, name) for name in symbols.names)
    uses: dict[str, Weights] = defaultdict(Weights)
    """Of each file's names, how much they are used elsewhere."""
    used: dict[str, Weights] = defaultdict(Weights)
    """By each file, how much it uses others; and by the others."""
    users: dict[str, Weights] = defaultdict(Weights)
    for path, family, symbols in sources():
        for name in symbols.names:
            homes = defined.get((family, name), ())
            if 0 < len(homes) <= COMMONEST and path not in homes:
                weight = _distinct(name) / len(homes) / math.sqrt(used_by[family, name])
                for home in homes:
                    uses[home].add(name, weight)
                    used[path].add(home, weight)
                    users[home].add(path, weight)
    for path, _, symbols in sources():
        if symbols.definitions:
            own = uses[path]
            near = used[path].most() | users[path].most()
            yield Ranked(
                path, round(sum(own.values()), 2), outline(symbols.definitions, own), json.dumps(near)
            )


def _distinct(name: str) -> float:
    return UNCLEAR if name.startswith("_") or (name.isalpha() and name.islower()) else 1.0


def outline(definitions: Iterable[Definition], uses: Mapping[str, float]) -> str:
    """The names of a file, the most used first, what belongs to a class behind it, as many as fit a line."""
    tops: dict[str, list[str]] = {}
    for definition in definitions:
        if not definition.owner:
            tops.setdefault(definition.name, [])
        elif not definition.name.startswith("_"):
            tops.setdefault(definition.owner, []).append(definition.name)

    def weight(name: str) -> tuple[float, bool]:
        return -sum(uses.get(each, 0.0) for each in (name, *tops[name])), name.startswith("_")

    line = ""
    ordered = sorted(tops, key=weight)
    for number, name in enumerate(ordered):
        members = sorted(dict.fromkeys(tops[name]), key=lambda each: -uses.get(each, 0.0))
        shown = " ".join(members[:MEMBERS]) + (" …" if len(members) > MEMBERS else "")
        piece = f"{name}({shown})" if members else name
        if len(line) + len(piece) > OUTLINE:
            piece = name if len(line) + len(name) <= OUTLINE else ""
        if not piece:
            return f"{line}, +{len(ordered) - number}" if line else ""
        line += f", {piece}" if line else piece
    return line
