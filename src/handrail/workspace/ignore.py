"""What `.gitignore` files leave out, as git understands them, fast enough to ask about every file."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

NAME = ".gitignore"
LARGEST = 256_000
"""Bytes of one file of rules."""
MOST_DOUBLE_STARS = 3
"""Of one rule: a rule with more is not believed, because looking for it could take for ever."""
NEVER = r"(?!)"
SPECIAL = re.compile(r"[*?\[\\]")
CLASSES = {
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:alnum:]": "a-zA-Z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:xdigit:]": "0-9a-fA-F",
    "[:space:]": " \t",
}
PIECE = re.compile(r"\\(.)|(\*+)|(\?)|(\[[!^]?\]?(?:\\.|[^\]\\])*\])|([^*?\[\\]+|\[|\\)", re.DOTALL)


class Rule(NamedTuple):
    pattern: str
    """As git writes it, without `!` and slashes at its ends."""
    negated: bool
    folders_only: bool
    anchored: bool
    """It means a path from the folder of its file, not a name anywhere below."""


class Rules:
    """The rules of one file. Of several that match, the last one counts.

    Most rules are plain names or endings, found in a table; the others are tried one by one only where all of
    them together match.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._exact: dict[str, list[int]] = {}
        self._endings: dict[str, list[int]] = {}
        names: dict[int, str] = {}
        paths: dict[int, str] = {}
        for number, rule in enumerate(rules):
            if rule.anchored:
                paths[number] = _path_regex(rule.pattern)
            elif not SPECIAL.search(rule.pattern):
                self._exact.setdefault(rule.pattern, []).append(number)
            elif rule.pattern.startswith("*.") and not SPECIAL.search(rule.pattern[2:]):
                self._endings.setdefault(rule.pattern[1:], []).append(number)
            else:
                names[number] = _segment_regex(rule.pattern)
        self._names = {number: re.compile(pattern) for number, pattern in names.items()}
        self._paths = {number: re.compile(pattern) for number, pattern in paths.items()}
        self._any_name = re.compile("|".join(names.values()) or NEVER).fullmatch
        self._any_path = re.compile("|".join(paths.values()) or NEVER).fullmatch

    def verdict(self, name: str, path: str, *, folder: bool) -> bool | None:
        """Whether the rules ignore what has this name and this path from their folder; None: no rule says."""
        if name not in self._exact and not self._any_name(name) and not self._any_path(path):
            dot = name.find(".")
            while dot >= 0 and name[dot:] not in self._endings:
                dot = name.find(".", dot + 1)
            if dot < 0:
                return None
        found = list(self._exact.get(name, ()))
        found += [
            number for ending, numbers in self._endings.items() if name.endswith(ending) for number in numbers
        ]
        found += [number for number, pattern in self._names.items() if pattern.fullmatch(name)]
        found += [number for number, pattern in self._paths.items() if pattern.fullmatch(path)]
        counting = [number for number in found if folder or not self._rules[number].folders_only]
        return not self._rules[max(counting)].negated if counting else None


def read_rules(data: bytes) -> Rules | None:
    """The rules of a file; None where it has none."""
    lines = data[:LARGEST].decode("utf-8", "surrogateescape").removeprefix("\ufeff").splitlines()
    rules = [rule for rule in map(_rule, lines) if rule]
    return Rules(rules) if rules else None


def rules_above(root: Path) -> list[tuple[str, Rules]]:
    """Rules that hold in `root` without lying in it, farthest first, each with the path from it to `root`."""
    folders = [root, *root.parents]
    top = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    files = [folder / NAME for folder in reversed(folders[1 : top + 1])]
    if (folders[top] / ".git").is_dir():
        files.insert(0, folders[top] / ".git" / "info" / "exclude")
    found = []
    for file in files:
        home = folders[top] if file.name == "exclude" else file.parent
        prefix = "".join(f"{part}/" for part in root.relative_to(home).parts)
        if rules := _read(file):
            found.append((prefix, rules))
    return found


def is_ignored(rules: Iterable[tuple[int, str, Rules]], name: str, path: str, *, folder: bool) -> bool:
    """What the nearest file of rules with a word on it says.

    Of each: how long the path to its folder is, and for one above the root the path from there.
    """
    for start, prefix, each in rules:
        verdict = each.verdict(name, prefix + path[start:], folder=folder)
        if verdict is not None:
            return verdict
    return False


def _read(file: Path) -> Rules | None:
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            return read_rules(opened.read(LARGEST))
    except OSError:
        return None


def _rule(line: str) -> Rule | None:
    line = re.sub(r"(?<!\\)\s+$", "", line)
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    pattern = line[1:] if negated else line
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if anchored and pattern.startswith("**/") and "/" not in pattern[3:]:
        pattern, anchored = pattern[3:], False
    for name, characters in CLASSES.items():
        pattern = pattern.replace(name, characters)
    if not pattern or pattern.count("**") > MOST_DOUBLE_STARS:
        return None
    return Rule(pattern, negated, folders_only, anchored)


def _path_regex(pattern: str) -> str:
    parts = pattern.split("/")
    built = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            built += ".+" if last else "(?:[^/]+/)*"
        else:
            built += _segment_regex(part) + ("" if last else "/")
    return built


def _segment_regex(segment: str) -> str:
    """A name with wildcards. Each star takes as little as it can and keeps it, so no search is ever long."""
    built, after_star = "", False
    waiting = ""
    for escaped, stars, one, chosen, plain in PIECE.findall(segment):
        if stars:
            built += f"(?>[^/]*?{waiting})" if after_star and waiting else waiting
            after_star, waiting = True, ""
        elif one:
            waiting += "[^/]"
        elif chosen:
            waiting += _chosen(chosen)
        else:
            waiting += re.escape(escaped or plain)
    return built + (f"[^/]*{waiting}" if after_star else waiting)


def _chosen(text: str) -> str:
    inside = text[1:-1]
    negated = inside[:1] in {"!", "^"}
    inside = inside[1:] if negated else inside
    if "--" in inside:
        return re.escape(text)
    # Signs that mean something to Python's sets and nothing to git's.
    inside = re.sub(r"[\[&~|]", r"\\\g<0>", inside)
    built = f"[{'^/' if negated else ''}{inside}]"
    try:
        re.compile(built)
    except re.error:
        return re.escape(text)
    return built
