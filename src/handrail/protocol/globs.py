"""Glob patterns: `covers` matches a pattern with a path, `name_regex` serves many patterns and names at once.

`*` and `?` stay within one name; `**` matches any number of folders, or none. A pattern that ends with `/`
matches everything in that folder. Brackets are a choice of characters; for `covers` they also match
themselves, as in `[id].tsx`, and `{a,b}` is either of both. Matching never takes long.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize


class Character(NamedTuple):
    """What one character of a name may be; `any_number`: a `*`."""

    among: frozenset[str] = frozenset()
    negated: bool = True
    any_number: bool = False

    def fits(self, character: str) -> bool:
        return (character in self.among) is not self.negated


Name = tuple[Character, ...]
Segment = str | tuple[Name, ...] | None
"""One name of a path: a literal, or alternative patterns; None is `**`."""

STAR = Character(any_number=True)
RANGE = re.compile(r"(.)-(.)|(.)", re.DOTALL)
MAX_RANGE = 512
BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
MAX_SPELLINGS = 256
TOKEN = re.compile(r"\\(.)|(\*+)|(\?)|(\[[!^]?\]?(?:\\.|[^\]\\])*\])|([^*?\[\\]+|\[|\\)", re.DOTALL)


def covers(pattern: str, path: str) -> bool:
    """Whether a pattern matches this path, both relative to the same folder; `..` never matches."""
    names = _names(path)
    return bool(names) and any(_matches(each, names or ()) for each in parse_pattern(pattern) or ())


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
    """How many names may be matched after this segment, given how many may be before it."""
    if segment is None:
        return set(range(min(ends), len(names) + 1)) if ends else ends
    if isinstance(segment, str):
        return {end + 1 for end in ends if end < len(names) and names[end] == segment}
    return {end + 1 for end in ends if end < len(names) and any(_fits(each, names[end]) for each in segment)}


def _fits(pattern: Name, name: str) -> bool:
    """Whether a name matches. Only the last star is retried, so no pattern takes long."""
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
def parse_pattern(pattern: str) -> tuple[tuple[Segment, ...], ...] | None:
    """The alternatives of a pattern: braces expanded, and taken literally; None if there are too many."""
    patterns = [pattern]
    for one in patterns:
        if len(patterns) > MAX_SPELLINGS:
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
    return (tuple(map(_character, name)), _chosen(name)) if any(each in name for each in "*?[") else name


@lru_cache(maxsize=1024)
def _names(text: str) -> tuple[str, ...] | None:
    """The names of a path; None if it has `..`."""
    names = normalize("NFC", text).replace("\\", "/").split("/")
    found = tuple(name for name in names if name not in ("", "."))
    return None if ".." in found else found


def plain_name(name: str) -> Name:
    return tuple(Character(frozenset(each), negated=False) for each in name)


def _chosen(name: str) -> Name:
    """A name in which brackets are a choice of characters."""
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
    found = set[str]()
    for first, last, single in RANGE.findall(text):
        start, end = ord(first or single), ord(last or single)
        found |= {chr(number) for number in range(start, min(end, start + MAX_RANGE) + 1)}
    return frozenset(found)


def name_regex(pattern: str) -> str:
    """A regular expression for one name; as in git, `\\` makes a wildcard literal.

    Stars match lazily and without backtracking, so no search takes long.
    """
    built, after_star = "", False
    waiting = ""
    for escaped, stars, one, chosen, plain in TOKEN.findall(pattern):
        if stars:
            built += f"(?>[^/]*?{waiting})" if after_star and waiting else waiting
            after_star, waiting = True, ""
        elif one:
            waiting += "[^/]"
        elif chosen:
            waiting += _character_class(chosen)
        else:
            waiting += re.escape(escaped or plain)
    return built + (f"[^/]*{waiting}" if after_star else waiting)


def _character_class(text: str) -> str:
    inside = text[1:-1]
    negated = inside[:1] in {"!", "^"}
    inside = inside[1:] if negated else inside
    if "--" in inside:
        return re.escape(text)
    # These characters are special in Python's sets and literal in git's.
    inside = re.sub(r"[\[&~|]", r"\\\g<0>", inside)
    built = f"[{'^/' if negated else ''}{inside}]"
    try:
        re.compile(built)
    except re.error:
        return re.escape(text)
    return built
