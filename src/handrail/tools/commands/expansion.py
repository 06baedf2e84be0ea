"""Replace file patterns by the names they match, as bash would, so that the words that are judged are run.

Names are sorted by their bytes. Whatever could make bash find other names, such as classes of characters,
hidden files or the locale, is not expanded but asked about.
"""

import os
import re
import time
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

from msgspec.structs import replace

from handrail.policy.commands.script import Script, SimpleCommand, Word
from handrail.protocol.errors import PathProblem, RefusalReason
from handrail.workspace.files import Workspace

MAX_MATCHES = 2_000  # of one pattern; each is checked like a path that the model wrote
MAX_NAMES = 100_000  # names looked at for one command
SECONDS = 1.0
SPECIAL = frozenset("*?[")
BRACKET = re.compile(
    r"\[[!^]?(?=[^]]*[^]-])(-?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9_.,@%+=:])*-?)\]"
)
"""A bracket that means the same in every shell and locale."""


def expand_patterns(script: Script, workspace: Workspace) -> Script:
    """The script with names instead of patterns; raises PathProblem if a pattern has to be asked about."""
    if not any(word.pattern for command in script.commands for word in command.words):
        return script
    expander = PatternExpander(workspace)
    return replace(script, commands=tuple(map(expander.expand_command, script.commands)))


class PatternExpander:
    """Expands the patterns of one command, within limits on names and time."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names_left = MAX_NAMES
        self._deadline = time.monotonic() + SECONDS

    def expand_command(self, command: SimpleCommand) -> SimpleCommand:
        if not any(word.pattern for word in command.words):
            return command
        groups = (self.expand(word.text) if word.pattern else [word.text] for word in command.words)
        words = tuple(Word(text) for group in groups for text in group)
        return replace(command, words=words, given=command.texts)

    def expand(self, pattern: str) -> list[str]:
        """The names that a pattern matches, or the pattern itself if there are none; raises PathProblem."""
        if "//" in pattern:
            raise _problem(pattern, "has an empty folder name")
        *folders, last = pattern.split("/")
        found = [""]
        for name in folders:
            if SPECIAL & set(name):
                matches = [each for start in found for each in self._matches(pattern, start, name)]
                found = [f"{each}/" for each in matches if self._is_folder(pattern, each)]
            else:
                found = [f"{each}{name}/" for each in found]
        if SPECIAL & set(last):
            found = [each for start in found for each in self._matches(pattern, start, last)]
        else:
            found = [f"{start}{last}" for start in found if self._exists(pattern, start, last)]
        if len(found) > MAX_MATCHES:
            raise _problem(pattern, "has too many matches")
        if any(not _is_text(each) for each in found):
            raise _problem(pattern, "matches a name that is not UTF-8")
        return sorted(found, key=os.fsencode) or [pattern]

    def _matches(self, pattern: str, folder: str, name: str) -> Iterator[str]:
        """The paths of what is in the folder and matches one part of the pattern."""
        if name.startswith("."):
            raise _problem(pattern, "may match hidden files", "protected_path")
        regex = _regex(name)
        if regex is None:
            raise _problem(pattern, "has a bracket that not every shell and locale reads alike")
        self._require_inside(pattern, folder)
        for entry in self._names(pattern, folder):
            if not entry.startswith(".") and _is_match(pattern, regex, entry):
                yield f"{folder}{entry}"

    def _names(self, pattern: str, folder: str) -> Iterator[str]:
        try:
            with os.scandir(self._workspace.root / folder) as entries:
                for entry in entries:
                    self._count(pattern)
                    yield entry.name
        except OSError:
            return  # bash takes a folder that it cannot read for an empty one

    def _is_folder(self, pattern: str, path: str) -> bool:
        place = self._workspace.root / path
        if place.is_symlink():
            self._require_inside(pattern, path)
        return place.is_dir()

    def _exists(self, pattern: str, folder: str, name: str) -> bool:
        self._require_inside(pattern, folder)
        return os.path.lexists(os.path.join(self._workspace.root, f"{folder}{name}"))

    def _require_inside(self, pattern: str, path: str) -> None:
        """Not even the names in folders outside the workspace are looked at."""
        self._count(pattern)
        if not self._workspace.resolve(path).inside:
            raise _problem(pattern, "leads out of the workspace", "outside_workspace")

    def _count(self, pattern: str) -> None:
        self._names_left -= 1
        if self._names_left < 0 or time.monotonic() > self._deadline:
            raise _problem(pattern, "would look at too many files")


def _problem(pattern: str, what: str, reason: RefusalReason = "invalid_arguments") -> PathProblem:
    return PathProblem(f"the pattern `{pattern}` {what}", reason)


@lru_cache(maxsize=64)
def _regex(name: str) -> re.Pattern[str] | None:
    """What one part of a pattern matches; None if it has a bracket whose meaning is in doubt."""
    if "[" in BRACKET.sub("", name):
        return None
    ranges = (each for bracket in BRACKET.findall(name) for each in re.findall("(.)-(.)", bracket))
    if any(first > last for first, last in ranges):
        return None
    return re.compile(translate(name.replace("[^", "[!")))


def _is_match(pattern: str, regex: re.Pattern[str], name: str) -> bool:
    found = bool(regex.match(name))
    if not name.isascii() and found != bool(regex.match(os.fsencode(name).decode("latin-1"))):
        # The locale says whether this name is read as characters or as bytes.
        raise _problem(pattern, f"may or may not match `{name.encode(errors='replace').decode()}`")
    return found


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
