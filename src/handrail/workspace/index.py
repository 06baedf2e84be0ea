"""The stat index: what every file looked like at one moment, and what is different at another.

Links are entries and never followed. Folders of `walk.UNSEEN` are not entered, `.git` among them; a
repository inside the workspace is a folder like any other, with its own `.gitignore` counting below it.
"""

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from handrail.workspace.ignore import LARGEST, NAME, Rules, is_ignored, read_rules, rules_above
from handrail.workspace.walk import UNSEEN

MOST_FILES = 200_000
DEEPEST = 100
HASHED = 64_000_000
"""Bytes of a file that is read to be sure of it; a larger one that was just written counts as changed."""
FINE, COARSE, SECOND = 20_000_000, 2_100_000_000, 1_000_000_000
"""Nanoseconds between two moments that a file system can tell apart: usually, and where it counts seconds."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
UNSURE = ""


class FileStat(NamedTuple):
    """What the system says of a file, of whatever kind, without opening it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int


def stat_of(told: os.stat_result) -> FileStat:
    return FileStat(told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino, told.st_mode)


@dataclass(frozen=True, slots=True)
class StatIndex:
    """Every file that was looked at, by its path from the root, which may hold surrogates for odd bytes."""

    files: Mapping[str, FileStat]
    sums: Mapping[str, str]
    """SHA-256 of those so new that a later write could leave them looking the same."""
    unentered: tuple[str, ...] = ()
    """Folders that were not looked into: by name, for being too deep, or because they cannot be read."""
    cut: bool = False
    """There were more files than were looked at."""
    folders: frozenset[str] = frozenset()
    """Those that were looked into, the root not among them."""
    ignored: Mapping[str, FileStat] = field(default_factory=dict)
    """Ignored files in these folders; ignored folders are not looked into."""
    linked: Mapping[str, int] = field(default_factory=dict)
    """How many names the file has, of those that have several."""


class Differences(NamedTuple):
    added: tuple[str, ...]
    changed: tuple[str, ...]
    """Those that may have another content, mode or kind; whether they do, their bytes tell."""
    removed: tuple[str, ...]


def snapshot(
    root: Path, *, ignored: bool = False, since: StatIndex | None = None, most: int = MOST_FILES
) -> StatIndex:
    """The index of the files below `root`, ignored ones only when asked for.

    Give the earlier index as `since` when the two are to be compared. OSError where there is no such folder.
    """
    look = _Look(ignored=ignored, since=since, most=most)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        above = [] if ignored else rules_above(root)
        look.folder(descriptor, "", tuple((0, prefix, rules) for prefix, rules in reversed(above)), 0)
    finally:
        os.close(descriptor)
    return StatIndex(
        look.files,
        look.sums,
        tuple(look.unentered),
        look.cut,
        frozenset(look.folders),
        look.ignored,
        look.linked,
    )


def differences(before: StatIndex, after: StatIndex) -> Differences:
    """What is different in the later index, which was made with the earlier one as its `since`."""
    old, new = before.files, after.files
    changed = [path for path, found in new.items() if path in old and old[path] != found]
    sums = after.sums
    changed += [
        path
        for path, known in before.sums.items()
        if path in new and old[path] == new[path] and (known == UNSURE or sums.get(path, UNSURE) != known)
    ]
    return Differences(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(sorted(changed)),
        removed=tuple(sorted(old.keys() - new.keys())),
    )


_Active = tuple[tuple[int, str, Rules], ...]


class _Look:
    def __init__(self, *, ignored: bool, since: StatIndex | None, most: int) -> None:
        self.files: dict[str, FileStat] = {}
        self.sums: dict[str, str] = {}
        self.unentered: list[str] = []
        self.folders: list[str] = []
        self.ignored: dict[str, FileStat] = {}
        self.linked: dict[str, int] = {}
        self.cut = False
        self._ignored = ignored
        self._since = since
        self._asked = since.sums if since else {}
        self._most = most
        self._began = time.time_ns()

    def folder(self, descriptor: int, prefix: str, rules: _Active, depth: int) -> None:
        with os.scandir(descriptor) as found:
            entries = list(found)
        if not self._ignored:
            rules = self._own_rules(descriptor, prefix, entries, rules)
        folders, files, asked, new = [], self.files, self._asked, self._began - COARSE
        for entry in entries:
            name = entry.name
            inner = entry.is_dir(follow_symlinks=False)
            if rules and is_ignored(rules, name, prefix + name, folder=inner):
                self._pass(entry, prefix + name, folder=inner)
                continue
            if inner:
                folders.append(name)
                continue
            if len(files) >= self._most:
                self.cut = True
                return
            try:
                told = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it went away just now
            path, changed = prefix + name, told.st_ctime_ns
            known = FileStat(told.st_size, told.st_mtime_ns, changed, told.st_ino, told.st_mode)
            files[path] = known
            if told.st_nlink > 1:
                self.linked[path] = told.st_nlink
            if changed > new or known.mtime_ns > new or path in asked:
                self._be_sure(descriptor, name, path, known)
        for name in sorted(folders):
            self._enter(descriptor, name, prefix + name, rules, depth)

    def _pass(self, entry: os.DirEntry[str], path: str, *, folder: bool) -> None:
        if folder or len(self.ignored) >= self._most:
            return
        with suppress(OSError):
            self.ignored[path] = stat_of(entry.stat(follow_symlinks=False))

    def _enter(self, parent: int, name: str, path: str, rules: _Active, depth: int) -> None:
        if name in UNSEEN or depth == DEEPEST:
            self.unentered.append(path)
            return
        try:
            descriptor = os.open(name, FOLDER, dir_fd=parent)
        except OSError:
            self.unentered.append(path)
            return
        self.folders.append(path)
        try:
            self.folder(descriptor, f"{path}/", rules, depth + 1)
        finally:
            os.close(descriptor)

    def _own_rules(
        self, descriptor: int, prefix: str, entries: list[os.DirEntry[str]], rules: _Active
    ) -> _Active:
        if not any(entry.name == NAME and entry.is_file(follow_symlinks=False) for entry in entries):
            return rules
        with suppress(OSError), open(os.open(NAME, FILE, dir_fd=descriptor), "rb") as file:
            if own := read_rules(file.read(LARGEST)):
                return ((len(prefix), "", own), *rules)
        return rules

    def _be_sure(self, folder: int, name: str, path: str, found: FileStat) -> None:
        """Take the sum of a file whose times cannot tell it from one that is written in this moment."""
        latest = max(found.mtime_ns, found.ctime_ns)
        fine = FINE if found.ctime_ns % SECOND else COARSE
        asked = path in self._asked and self._since is not None and self._since.files[path] == found
        if asked or latest > self._began - fine:
            self.sums[path] = _sum(folder, name, found)


def _sum(folder: int, name: str, found: FileStat) -> str:
    try:
        if stat.S_ISLNK(found.mode):
            return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()
        if not stat.S_ISREG(found.mode) or found.size > HASHED:
            return UNSURE
        with open(os.open(name, FILE, dir_fd=folder), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return UNSURE
