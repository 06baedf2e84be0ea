"""Which paths an `owned_scope` covers: exact paths, globs, and `!` in front of what is left out.

Paths are relative to the workspace, links resolved. `*` and `?` stay within one name; `**` spans any number
of folders, none included. A pattern that ends with `/` means all that is in that folder. Brackets are
characters to choose from, and stand for themselves too, as in `[id].tsx`; `{a,b}` is one of both. A negation
wins wherever it stands.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize


class Character(NamedTuple):
    """What one character of a name may be; `any_number` of them for a `*`."""

    among: frozenset[str] = frozenset()
    negated: bool = True
    any_number: bool = False

    def fits(self, character: str) -> bool:
        return (character in self.among) is not self.negated


Name = tuple[Character, ...]
Segment = str | tuple[Name, ...] | None
"""One name of a path, as it is or in its possible spellings; None stands for `**`."""

STAR = Character(any_number=True)
LONGEST_RANGE = 512
BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
MOST_SPELLINGS = 256


def in_scope(path: str, scope: Iterable[str]) -> bool:
    """Whether a path is owned: some pattern covers it, and none with `!` does."""
    patterns = [pattern.strip() for pattern in scope]
    denied = [pattern[1:].lstrip() for pattern in patterns if pattern.startswith("!")]
    owned = [pattern for pattern in patterns if not pattern.startswith("!")]
    if any(spelled_out(each) is None for each in denied):
        return False
    names = _names(path)
    return any(_covers(each, names) for each in owned) and not any(_covers(each, names) for each in denied)


def covers(pattern: str, path: str) -> bool:
    """Whether one pattern, without `!`, means this path; no pattern reaches out of the workspace."""
    return _covers(pattern, _names(path))


def _covers(pattern: str, names: Sequence[str] | None) -> bool:
    return bool(names) and any(_matches(each, names or ()) for each in spelled_out(pattern) or ())


def _matches(segments: tuple[Segment, ...], names: Sequence[str]) -> bool:
    if isinstance(segments[0], str) and segments[0] != names[0]:
        return False
    *before, last = segments
    ends = {0}
    for segment in before:
        ends = _after(segment, names, ends)
    if last is None:  # `src/**` is what lies in src, not src itself
        return any(end < len(names) for end in ends)
    return len(names) in _after(last, names, ends)


def _after(segment: Segment, names: Sequence[str], ends: set[int]) -> set[int]:
    """How many names can be used up, when so many were before this segment."""
    if segment is None:
        return set(range(min(ends), len(names) + 1)) if ends else ends
    return {end + 1 for end in ends if end < len(names) and _is_one(segment, names[end])}


def _is_one(segment: str | tuple[Name, ...], name: str) -> bool:
    if isinstance(segment, str):
        return segment == name
    return any(_fits(each, name) for each in segment)


def _fits(pattern: Name, name: str) -> bool:
    """Whether a name is meant. The last star takes what is needed, so no pattern takes long."""
    at = read = 0
    star, tried = -1, 0
    while read < len(name):
        if at < len(pattern) and pattern[at].any_number:
            star, tried = at, read
            at += 1
        elif at < len(pattern) and pattern[at].fits(name[read]):
            at, read = at + 1, read + 1
        elif star >= 0:
            tried += 1
            at, read = star + 1, tried
        else:
            return False
    return all(each.any_number for each in pattern[at:])


@lru_cache(maxsize=4096)
def spelled_out(pattern: str) -> tuple[tuple[Segment, ...], ...] | None:
    """What a pattern with braces stands for, and where they are characters; None where it is far too much."""
    patterns = [pattern]
    for one in patterns:
        if len(patterns) > MOST_SPELLINGS:
            return None
        if found := BRACES.search(one):
            patterns += [one[: found.start()] + each + one[found.end() :] for each in found[1].split(",")]
    return tuple(filter(None, map(_segments, patterns)))


def _segments(pattern: str) -> tuple[Segment, ...]:
    names = _names(pattern)
    inside = pattern.replace("\\", "/").endswith("/")
    if names is None or not (names or inside):
        return ()
    segments = [_segment(name) for name in names]
    return (*segments, None) if inside else tuple(segments)


def _segment(name: str) -> Segment:
    if name == "**":
        return None
    return (_plain(name), _chosen(name)) if any(each in name for each in "*?[") else name


def _names(text: str) -> tuple[str, ...] | None:
    """The names of a path; None where it climbs out of where it began."""
    names = normalize("NFC", text).replace("\\", "/").split("/")
    found = tuple(name for name in names if name not in ("", "."))
    return None if ".." in found else found


def _plain(name: str) -> Name:
    """A name in which brackets are brackets."""
    return tuple(map(_character, name))


def _chosen(name: str) -> Name:
    """A name in which brackets hold characters to choose from."""
    found: list[Character] = []
    at = 0
    while at < len(name):
        end = name.find("]", at + 2) if name[at] == "[" else -1
        if end < 0:
            found.append(_character(name[at]))
            at += 1
            continue
        inside = name[at + 1 : end]
        negated = inside[0] in "!^" and len(inside) > 1
        found.append(Character(_among(inside[negated:]), negated=negated))
        at = end + 1
    return tuple(found)


def _character(character: str) -> Character:
    if character == "*":
        return STAR
    return Character() if character == "?" else Character(frozenset(character), negated=False)


def _among(text: str) -> frozenset[str]:
    found, at = set[str](), 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            first, last = ord(text[at]), ord(text[at + 2])
            found |= {chr(number) for number in range(first, min(last, first + LONGEST_RANGE) + 1)}
            at += 3
        else:
            found.add(text[at])
            at += 1
    return frozenset(found)
