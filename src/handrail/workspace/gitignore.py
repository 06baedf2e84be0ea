"""Match paths against .gitignore rules as git does, fast enough for every file."""

import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.config.open_file import open_file
from handrail.protocol.globs import name_regex

GITIGNORE = ".gitignore"
MAX_RULES_BYTES = 256_000  # of one file of rules
MAX_ALL_RULES_BYTES = 1_000_000  # of all such files below one folder
MAX_DOUBLE_STARS = 3  # a rule with more is skipped, because matching it could take too long
MATCHES_NOTHING = r"(?!)"
SPECIAL = re.compile(r"[*?\[\\]")
CLASSES = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z"}
CLASSES |= {"xdigit": "0-9a-fA-F", "space": " \t"}


class IgnoreRule(NamedTuple):
    pattern: str  # as git writes it, without `!` and slashes at its ends
    negated: bool
    folders_only: bool
    anchored: bool  # it matches a path from the folder of its file, not a name anywhere below


class IgnoreRules:
    """The rules of one file. If several match, the last one counts.

    Most rules are plain names or endings, found in a table; the others are tried one by one only if their
    combined pattern matches.
    """

    def __init__(self, rules: Sequence[IgnoreRule]) -> None:
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
                names[number] = name_regex(rule.pattern)
        self._names = {number: re.compile(pattern) for number, pattern in names.items()}
        self._paths = {number: re.compile(pattern) for number, pattern in paths.items()}
        self._any_name = re.compile("|".join(names.values()) or MATCHES_NOTHING).fullmatch
        self._any_path = re.compile("|".join(paths.values()) or MATCHES_NOTHING).fullmatch

    def verdict(self, name: str, path: str, *, folder: bool) -> bool | None:
        """Whether the rules ignore this name and path from their folder; None: no rule matches."""
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


@functools.lru_cache(maxsize=512)
def parse_rules(data: bytes) -> IgnoreRules | None:
    lines = data[:MAX_RULES_BYTES].decode("utf-8", "surrogateescape").removeprefix("\ufeff").splitlines()
    rules = [rule for rule in map(_parse_rule, lines) if rule]
    return IgnoreRules(rules) if rules else None


def rules_above(root: Path) -> list[tuple[str, IgnoreRules]]:
    """Rules above `root` that apply in it, farthest first, each with the path from its folder to `root`."""
    folders = [root, *root.parents]
    top = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    files = [folder / GITIGNORE for folder in reversed(folders[1 : top + 1])]
    if (folders[top] / ".git").is_dir():
        files.insert(0, folders[top] / ".git" / "info" / "exclude")
    found = []
    for file in files:
        home = folders[top] if file.name == "exclude" else file.parent
        prefix = "".join(f"{part}/" for part in root.relative_to(home).parts)
        if rules := read_rules(file):
            found.append((prefix, rules))
    return found


def is_ignored(rules: Iterable[tuple[int, str, IgnoreRules]], name: str, path: str, *, folder: bool) -> bool:
    """The verdict of the nearest file of rules that has one.

    Each comes with the length of the path to its folder and, for one above the root, the path from there.
    """
    for start, prefix, each in rules:
        verdict = each.verdict(name, prefix + path[start:], folder=folder)
        if verdict is not None:
            return verdict
    return False


def read_rules(path: str | Path) -> IgnoreRules | None:
    try:
        with open_file(path) as file:
            return parse_rules(file.read(MAX_RULES_BYTES))
    except OSError:
        return None


ActiveRules = tuple[tuple[int, str, IgnoreRules], ...]


class NestedRules:
    """The rules that apply in a folder and below it, nearest first; see `is_ignored`."""

    def __init__(self, root: Path) -> None:
        self.above: ActiveRules = tuple((0, prefix, rules) for prefix, rules in reversed(rules_above(root)))
        self._left = MAX_ALL_RULES_BYTES

    def enter(self, folder: int, prefix: str, rules: ActiveRules) -> ActiveRules:
        """The rules for an open folder, whose path ends with a slash, given those of the folder around it.

        As in git, a link named `.gitignore` is not followed.
        """
        try:
            with open_file(GITIGNORE, folder=folder, follow=False) as file:
                data = file.read(min(MAX_RULES_BYTES, self._left))
        except OSError:
            return rules
        self._left -= len(data)
        own = parse_rules(data)
        return ((len(prefix), "", own), *rules) if own else rules


def _parse_rule(line: str) -> IgnoreRule | None:
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
        pattern = pattern.replace(f"[:{name}:]", characters)
    if not pattern or pattern.count("**") > MAX_DOUBLE_STARS:
        return None
    return IgnoreRule(pattern, negated, folders_only, anchored)


def _path_regex(pattern: str) -> str:
    parts = pattern.split("/")
    built = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            built += ".+" if last else "(?:[^/]+/)*"
        else:
            built += name_regex(part) + ("" if last else "/")
    return built
