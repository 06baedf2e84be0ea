"""List the entries below a folder, what a search leaves out, and names similar to a missing path."""

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from handrail.workspace.gitignore import ActiveRules, NestedRules, is_ignored
from handrail.workspace.paths import ResolvedPath, printable
from handrail.workspace.sensitive_names import GIT, SECRET_FOLDERS, is_secret_name, normalize_name

SKIPPED_FOLDERS = {".git", "node_modules", "__pycache__", ".venv"}  # listed, but not entered
SKIPPED_FOLDERS |= {".mypy_cache", ".ruff_cache", ".pytest_cache"}
MAX_NAMES = 50_000  # of one folder
MAX_CANDIDATES = 5_000
MAX_WALKED = 1_000_000  # entries below one folder
MAX_WALK_DEPTH = 100
MAX_WALK_SECONDS = 20.0
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(NamedTuple):
    path: str  # relative to the folder that is listed
    kind: str  # `file`, `folder`, `link` or `other`
    size: int = 0
    target: str = ""


def walk(folder: Path, depth: int, most: int) -> list[Entry]:
    """Up to `most` entries; raises OSError when the folder itself cannot be listed."""
    return list(islice(_walk(folder, depth), most))


def _walk(folder: Path, depth: int) -> Iterator[Entry]:
    waiting = deque([(folder, "", depth)])
    while waiting:
        current, prefix, left = waiting.popleft()
        try:
            with os.scandir(current) as found:
                names = sorted(islice((item.name for item in found), MAX_NAMES))
        except OSError:
            if not prefix:
                raise
            continue
        for name in names:
            entry = _entry(current, name)
            yield entry._replace(path=prefix + entry.path)
            if entry.kind == "folder" and left > 1 and name not in SKIPPED_FOLDERS:
                waiting.append((current / name, f"{prefix}{entry.path}/", left - 1))


def _entry(folder: Path, name: str) -> Entry:
    path, shown = folder / name, printable(name)
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return Entry(shown, "link", target=printable(os.readlink(path)))
    except OSError:
        return Entry(shown, "other")
    if stat.S_ISDIR(found.st_mode):
        return Entry(shown, "folder")
    if stat.S_ISREG(found.st_mode):
        return Entry(shown, "file", found.st_size)
    return Entry(shown, "other")


class LeftOut(NamedTuple):
    """What a search of a folder leaves out, by paths from the root; folders end with a slash."""

    ignored: list[str]
    secret: list[str]


class TooManyEntries(Exception):
    """There are more entries below a folder than can be looked at."""


def find_left_out(root: Path, start: str = ".") -> LeftOut:
    """What a search below the folder `start` must not read; raises TooManyEntries or OSError.

    Only names are looked at, and the rules of `.gitignore` files. No link is followed.
    """
    finder = _LeftOutFinder(root)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    prefix, rules = "", finder.rules.above
    try:
        for name in Path(start).parts:
            rules = finder.rules.enter(descriptor, prefix, rules)
            inner = os.open(name, FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor, prefix = inner, f"{prefix}{name}/"
        finder.look(descriptor, prefix, rules, 0)
    finally:
        os.close(descriptor)
    return finder.found


class _LeftOutFinder:
    def __init__(self, root: Path) -> None:
        self.found = LeftOut([], [])
        self.rules = NestedRules(root)
        self._left = MAX_WALKED
        self._deadline = time.monotonic() + MAX_WALK_SECONDS

    def look(self, descriptor: int, prefix: str, rules: ActiveRules, depth: int) -> None:
        rules = self.rules.enter(descriptor, prefix, rules)
        folders: list[str] = []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                name, is_folder = entry.name, entry.is_dir(follow_symlinks=False)
                path = f"{prefix}{name}/" if is_folder else prefix + name
                if may_hold_secrets(name, folder=is_folder):
                    self.found.secret.append(path)
                elif rules and is_ignored(rules, name, prefix + name, folder=is_folder):
                    self.found.ignored.append(path)
                elif is_folder and name != GIT:
                    folders.append(name)
                self._left -= 1
                if self._left < 0:
                    raise TooManyEntries
        if time.monotonic() > self._deadline:
            raise TooManyEntries
        for name in folders:
            try:
                inner = os.open(name, FOLDER_FLAGS, dir_fd=descriptor) if depth < MAX_WALK_DEPTH else -1
            except OSError:
                inner = -1
            if inner < 0:  # nobody knows what is in it
                self.found.secret.append(f"{prefix}{name}/")
                continue
            try:
                self.look(inner, f"{prefix}{name}/", rules, depth + 1)
            finally:
                os.close(inner)


def may_hold_secrets(name: str, *, folder: bool) -> bool:
    """Whether a file or folder of this name may hold secrets, however the name is written."""
    plain = name.isascii() and not any(each in name for each in ":~") and name[-1:] not in (" ", ".")
    known = name.lower() if plain else normalize_name(name)
    return known in SECRET_FOLDERS if folder else is_secret_name(known)


def did_you_mean(place: ResolvedPath, root: Path) -> str:
    """A sentence with files of a similar name, or of the same name elsewhere; empty if there are none."""
    if not place.inside:
        return ""
    found = _similar_in_folder(place, root) or _same_name_elsewhere(place, root)
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _similar_in_folder(place: ResolvedPath, root: Path) -> list[str]:
    folder = place.absolute.parent
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, MAX_CANDIDATES)]
    except OSError:
        return []
    import difflib

    close = difflib.get_close_matches(place.absolute.name, names, n=3, cutoff=0.6)
    return [printable((folder / name).relative_to(root).as_posix()) for name in close]


def _same_name_elsewhere(place: ResolvedPath, root: Path) -> list[str]:
    try:
        entries = walk(root, depth=12, most=MAX_CANDIDATES)
    except OSError:
        return []
    return [entry.path for entry in entries if Path(entry.path).name == place.absolute.name][:3]
