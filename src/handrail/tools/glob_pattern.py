"""File name patterns: `*`, `?`, `[...]`, `{a,b}`, and `**` for any number of folders.

A pattern becomes a machine that reads a path character by character, in all possible states at once, so that
no pattern takes longer than another of its length: regular expressions try one way after the other.
"""

import re
from collections.abc import Callable, Iterable

PART = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|[{},]|.", re.DOTALL)
LONGEST = 200
"""Characters of a pattern."""
REMEMBERED = 20_000
"""Steps that need not be worked out again."""

Test = Callable[[str], bool]
States = frozenset[int]


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path relative to the folder fits; a pattern without a slash fits names at any depth."""
    pattern = pattern.removeprefix("./").removeprefix("/")
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    machine = _Machine()
    machine.read(pattern)
    return machine.fits


class _Machine:
    """States, of which each has at most one step that reads a character, and any number of free ones."""

    def __init__(self) -> None:
        self._steps: list[tuple[Test, int] | None] = [None]
        self._free: list[list[int]] = [[]]
        self._at = 0
        """The state that what was read so far leads to."""
        self._known: dict[tuple[States, str], States] = {}

    def read(self, pattern: str) -> None:
        balanced = pattern.count("{") == pattern.count("}")
        groups: list[tuple[int, int]] = []
        for part in PART.findall(pattern):
            if part == "{" and balanced:
                groups.append((self._at, self._new()))
                self._begin_choice(groups[-1][0])
            elif part == "," and groups:
                self._free[self._at].append(groups[-1][1])
                self._begin_choice(groups[-1][0])
            elif part == "}" and groups:
                self._end_group(groups.pop()[1])
            else:
                self._take(part)
        while groups:
            self._end_group(groups.pop()[1])

    def fits(self, path: str) -> bool:
        states = self._reached([0])
        for character in path:
            states = self._after(states, character)
            if not states:
                return False
        return self._at in states

    def _take(self, part: str) -> None:
        match part:
            case "*":
                self._any_number(_in_a_name)
            case "**":
                self._any_number(_anything)
            case "**/":
                self._folders()
            case "?":
                self._one(_in_a_name)
            case _ if len(part) > 1 and (one_of := _set(part)):
                self._one(one_of)
            case _:
                for character in part:
                    self._one(character.__eq__)

    def _one(self, test: Test) -> None:
        after = self._new()
        self._steps[self._at] = (test, after)
        self._at = after

    def _any_number(self, test: Test) -> None:
        loop = self._go_on()
        self._steps[loop] = (test, loop)
        self._go_on()

    def _folders(self) -> None:
        """Any number of names, each with a slash behind it."""
        before = self._go_on()
        self._one(_in_a_name)
        self._any_number(_in_a_name)
        self._one("/".__eq__)
        self._free[self._at].append(before)
        after = self._new()
        self._free[before].append(after)
        self._at = after

    def _begin_choice(self, start: int) -> None:
        self._at = start
        self._go_on()

    def _end_group(self, end: int) -> None:
        self._free[self._at].append(end)
        self._at = end

    def _go_on(self) -> int:
        """A new state that is reached freely."""
        new = self._new()
        self._free[self._at].append(new)
        self._at = new
        return new

    def _new(self) -> int:
        self._steps.append(None)
        self._free.append([])
        return len(self._steps) - 1

    def _after(self, states: States, character: str) -> States:
        known = self._known.get((states, character))
        if known is not None:
            return known
        steps = (self._steps[state] for state in states)
        found = self._reached([step[1] for step in steps if step and step[0](character)])
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[states, character] = found
        return found

    def _reached(self, first: Iterable[int]) -> States:
        """These states and all that are reached from them freely."""
        found, waiting = set(first), list(first)
        while waiting:
            for state in self._free[waiting.pop()]:
                if state not in found:
                    found.add(state)
                    waiting.append(state)
        return frozenset(found)


def _in_a_name(character: str) -> bool:
    return character != "/"


def _anything(character: str) -> bool:
    return True


def _set(part: str) -> Test | None:
    """`[abc]`, `[a-c]` or `[!a]`; None for what makes none and is taken literally."""
    inside = part[1:-1]
    negated = inside.startswith("!")
    inside = inside.removeprefix("!").replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    inside = f"\\{inside}" if inside.startswith("^") else inside
    try:
        regex = re.compile(f"[{'^/' if negated else ''}{inside}]", re.DOTALL)
    except re.error:
        return None
    return lambda character: regex.fullmatch(character) is not None
