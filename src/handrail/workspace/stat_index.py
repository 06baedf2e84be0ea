"""The stat index: the stat of every file at one moment, and what differs later.

Links are entries and never followed. Folders of `walk.SKIPPED_FOLDERS`, such as `.git`, are not entered. A
repository inside the workspace is an ordinary folder, with its own `.gitignore` applying below it.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import field

from handrail.config.open_file import open_file
from handrail.protocol.values import Value
from handrail.workspace.gitignore import ActiveRules, NestedRules, is_ignored
from handrail.workspace.sensitive_names import GIT
from handrail.workspace.walk import SKIPPED_FOLDERS

MAX_FILES = 200_000
MAX_ENTRIES = 2_000_000  # looked at, folders and ignored files included
MAX_DEPTH = 100
MAX_HASHED_BYTES = 64_000_000  # a larger file that was just written counts as changed without being read
FINE, COARSE, SECOND = 20_000_000, 2_100_000_000, 1_000_000_000
"""Nanoseconds that a file system can tell apart: usually, and where it counts seconds."""
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
UNKNOWN_HASH = ""


class FileStat(NamedTuple):
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int


def stat_of(found: os.stat_result) -> FileStat:
    return FileStat(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)


def is_recent(found: FileStat, now_ns: int) -> bool:
    """Whether the file could be written again now without a change of its times."""
    return max(found.mtime_ns, found.ctime_ns) > now_ns - (FINE if found.ctime_ns % SECOND else COARSE)


class StatIndex(Value):
    """All files, by path from the root; a path that is not UTF-8 has surrogates."""

    files: Mapping[str, FileStat]
    sums: Mapping[str, str]  # SHA-256 of files so new that a later write could leave their stat the same
    unentered: tuple[str, ...] = ()  # folders not entered: by name, too deep, or unreadable
    cut: bool = False  # there were more files than the limit
    folders: Mapping[str, int] = field(default_factory=dict)  # mode of each entered folder but the root
    ignored: Mapping[str, FileStat] = field(default_factory=dict)
    # In these folders; in an index of everything, those below ignored folders and caches too.
    linked: Mapping[str, int] = field(default_factory=dict)  # how many names (hard links), if several
    ignored_folders: tuple[str, ...] = ()  # not entered, unless everything was
    touched: frozenset[str] | None = None  # only these may differ from the index before it; None: any


class Differences(NamedTuple):
    added: tuple[str, ...]
    changed: tuple[str, ...]  # files whose content, mode or kind may have changed; only their bytes can tell
    removed: tuple[str, ...]


def snapshot(
    root: Path,
    *,
    ignored: bool = False,
    since: StatIndex | None = None,
    most: int = MAX_FILES,
    everything: bool = False,
    rules_of: Path | None = None,
) -> StatIndex:
    """The index of the files below `root`, ignored ones only with `ignored`.

    With `everything`, all folders but `.git` are entered, and ignored files are among the others too. With
    `rules_of`, the rules from above the root are those of another folder, of which it is a copy.

    To compare two indexes, give the earlier one as `since`. Raises OSError if there is no such folder.
    """
    scan = Scanner(since=since, most=most, everything=everything)
    return scan.index(root, None if ignored else NestedRules(rules_of or root))


def differences(before: StatIndex, after: StatIndex) -> Differences:
    """What differs in the later index, which was made with the earlier one as its `since`."""
    old, new = before.files, after.files
    if after.touched is not None:
        old = {path: old[path] for path in after.touched if path in old}
        new = {path: new[path] for path in after.touched if path in new}
    changed = [path for path, found in new.items() if path in old and old[path] != found]
    for path, known in before.sums.items():
        unsure = known == UNKNOWN_HASH or after.sums.get(path, UNKNOWN_HASH) != known
        if unsure and path in new and old[path] == new[path]:
            changed.append(path)
    return Differences(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(sorted(changed)),
        removed=tuple(sorted(old.keys() - new.keys())),
    )


OnFolder = Callable[[int, str], object]
"""Called with the descriptor of each folder and its path with a slash, before anything in it is looked at."""


class Scanner:
    """One look at a workspace, or at some of its files."""

    def __init__(
        self,
        *,
        since: StatIndex | None = None,
        most: int = MAX_FILES,
        everything: bool = False,
        on_folder: OnFolder | None = None,
    ) -> None:
        self.files: dict[str, FileStat] = {}
        self.sums: dict[str, str] = {}
        self.unentered: list[str] = []
        self.folders: dict[str, int] = {}
        self.ignored: dict[str, FileStat] = {}
        self.ignored_folders: list[str] = []
        self.linked: dict[str, int] = {}
        self.ignored_linked: list[str] = []  # ignored files with several names
        self.cut = False
        self.rules: NestedRules | None = None
        self.rules_in: dict[str, ActiveRules] = {}  # by the folder's path with a slash
        self._left = MAX_ENTRIES
        self._everything = everything
        self._since = since
        self._unsure = since.sums if since else {}
        self._most = most
        self._began = time.time_ns()
        self._on_folder = on_folder

    def index(self, root: Path, rules: NestedRules | None) -> StatIndex:
        """The index of all files below the root; raises OSError if there is no such folder."""
        self.rules = rules
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.folder(descriptor, "", rules.above if rules else (), 0)
        finally:
            os.close(descriptor)
        return StatIndex(
            *(self.files, self.sums, tuple(self.unentered), self.cut),
            *(self.folders, self.ignored, self.linked, tuple(self.ignored_folders)),
        )

    def folder(
        self, descriptor: int, prefix: str, rules: ActiveRules, depth: int, *, aside: bool = False
    ) -> None:
        if self._on_folder:
            self._on_folder(descriptor, prefix)
        if self.rules:
            rules = self.rules.enter(descriptor, prefix, rules)
        self.rules_in[prefix] = rules
        with os.scandir(descriptor) as entries:
            folders = self._look(entries, descriptor, prefix, rules, aside=aside)
        for name, is_aside in sorted(folders):
            self._enter(descriptor, name, prefix + name, rules, depth, aside=is_aside)

    def _look(
        self,
        entries: Iterator[os.DirEntry[str]],
        descriptor: int,
        prefix: str,
        rules: ActiveRules,
        *,
        aside: bool,
    ) -> list[tuple[str, bool]]:
        """Add the files of a folder; the names of the folders in it, each with whether it is ignored."""
        folders: list[tuple[str, bool]] = []
        # This loop runs for every file of every scan: names are local, and FileStat itself is not called.
        files, unsure, new, make = self.files, self._unsure, self._began - COARSE, tuple.__new__
        everything, left, most = self._everything, self._left, self._most
        for entry in entries:
            left -= 1
            if left < 0:
                self.cut = True
                break
            name = entry.name
            path, is_folder = prefix + name, entry.is_dir(follow_symlinks=False)
            is_aside = aside or (bool(rules) and is_ignored(rules, name, path, folder=is_folder))
            if is_aside and not everything:
                if is_folder:
                    self.ignored_folders.append(path)
                elif len(self.ignored) < most:
                    with suppress(OSError):
                        found = entry.stat(follow_symlinks=False)
                        self.ignored[path] = stat_of(found)
                        if found.st_nlink > 1:
                            self.ignored_linked.append(path)
                continue
            if is_folder:
                folders.append((name, is_aside or name in SKIPPED_FOLDERS))
                continue
            if len(files) >= most:
                self.cut = True
                return []
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it was just removed
            written, changed = found.st_mtime_ns, found.st_ctime_ns
            known = make(FileStat, (found.st_size, written, changed, found.st_ino, found.st_mode))
            files[path] = known
            if is_aside:
                self.ignored[path] = known
            if found.st_nlink > 1:
                self.linked[path] = found.st_nlink
            if changed > new or written > new or path in unsure:
                self.hash_if_new(descriptor, name, path, known)
        self._left = left
        return folders

    def _enter(
        self, parent: int, name: str, path: str, rules: ActiveRules, depth: int, *, aside: bool
    ) -> None:
        if (name == GIT if self._everything else name in SKIPPED_FOLDERS) or depth == MAX_DEPTH:
            self.unentered.append(path)
            return
        try:
            descriptor = os.open(name, FOLDER_FLAGS, dir_fd=parent)
        except OSError:
            self.unentered.append(path)
            return
        try:
            self.folders[path] = stat.S_IMODE(os.fstat(descriptor).st_mode)
            self.folder(descriptor, f"{path}/", rules, depth + 1, aside=aside)
        finally:
            os.close(descriptor)

    def hash_if_new(self, folder: int, name: str, path: str, found: FileStat) -> None:
        """Hash a file that could be written again now without a change of its times."""
        unsure = path in self._unsure and self._since is not None and self._since.files[path] == found
        if unsure or is_recent(found, self._began):
            self.sums[path] = _hash_file(folder, name, found)


def _hash_file(folder: int, name: str, found: FileStat) -> str:
    try:
        if stat.S_ISLNK(found.mode):
            return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()
        digest = hashlib.sha256()
        with open_file(name, folder=folder, follow=False) as file:
            for chunk in file.chunks(MAX_HASHED_BYTES):
                digest.update(chunk)
        return digest.hexdigest()
    except OSError:
        return UNKNOWN_HASH
