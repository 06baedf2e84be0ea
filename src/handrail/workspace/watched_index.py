"""The stat index of a large workspace, kept current by the kernel's notices of changes (inotify).

A look by notices is as good as a look at every file if the writers are confined by bubblewrap and have ended.
All else is looked at in full: what notices do not tell, or tell too little about. Those are writes through
another name of a file, or through memory by a program that still runs. So every folder that a command can
write is watched, also those that the index leaves out, and where a second name can have been made, nothing is
taken from notices. A full look follows after `MAX_AGE` anyway: programs of the user are not confined.
"""

import ctypes
import os
import stat
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from handrail.config.open_file import read_file
from handrail.workspace.gitignore import GITIGNORE, ActiveRules, NestedRules, is_ignored
from handrail.workspace.sensitive_names import GIT, STATE_FILES, STATE_FOLDERS
from handrail.workspace.stat_index import FOLDER_FLAGS, MAX_FILES, Scanner, StatIndex, is_recent, stat_of

MIN_FILES = 500
"""In a smaller workspace, a look at every file takes less time than to read notices."""
MAX_FOLDERS = 8_000  # watched: the user's other programs share the kernel's limit
MAX_LINKED = 1_000  # files with several names, which are looked at each time
MAX_REPOSITORIES = 500  # inside the workspace; of more, commands can write the `.git`
MAX_AGE = 30.0  # seconds
BUFFER_BYTES = 1 << 16
MOUNTS = Path("/proc/self/mountinfo")
MAX_MOUNTS_BYTES = 1_000_000
EVENT = struct.Struct("iIII")  # watch, kind, cookie, bytes of the name

MODIFIED, ATTRIBUTES, CLOSED = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATED, DELETED = 0x40, 0x80, 0x100, 0x200
DELETED_SELF, MOVED_SELF, IGNORED = 0x400, 0x800, 0x8000
ONLY_FOLDER, OF_FOLDER = 0x01000000, 0x40000000
NAME_CHANGES = MOVED_FROM | MOVED_TO | CREATED | DELETED
IN_INDEX = MODIFIED | ATTRIBUTES | CLOSED | NAME_CHANGES | DELETED_SELF | MOVED_SELF | ONLY_FOLDER
OUTSIDE = CREATED | MOVED_TO | ONLY_FOLDER
"""What is watched in a folder that is not in the index: a second name of a file can appear there."""

FILE_SYSTEMS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "f2fs", "bcachefs", "zfs"}
"""Those on which all changes are made by this kernel."""
OUR_NAMES = {*STATE_FOLDERS, *STATE_FILES}
"""At the top of the workspace. bubblewrap makes and removes them, and closes them to commands."""


class WatchedFolder(NamedTuple):
    prefix: str  # its path, with a slash at the end
    in_index: bool


class Notices(NamedTuple):
    paths: set[str]  # in the index, or ignored beside it
    complete: bool  # they tell all that changed
    new_folders: set[str]  # outside the index


class WatchedIndex:
    """Looks at a workspace again and again; the first looks, and those at a small one, are in full."""

    def __init__(self, root: Path, fewest: int = MIN_FILES) -> None:
        self._root = root
        self._fewest = fewest
        self._usable = MOUNTS.exists()
        self._inotify: _Inotify | None = None
        self._folders: dict[int, WatchedFolder] = {}  # by watch
        self._outside: set[str] = set()  # folders outside the index that are watched with all below them
        self._rules: dict[str, ActiveRules] = {}
        self._linked: set[str] = set()  # files with several names, at the last full look
        self._index: StatIndex | None = None  # the last look, if notices tell what has changed since
        self._facts: object = None
        self._looked = 0.0  # in full
        self._lock = threading.Lock()

    def close(self) -> None:
        if self._inotify:
            self._inotify.close()
        self._inotify, self._index = None, None

    def look(self, since: StatIndex | None = None, *, in_full: bool = False, expected: int = 0) -> StatIndex:
        """The index now, to be compared with `since`; raises OSError if there is no such folder.

        `in_full`: a writer was not confined by bubblewrap, or has not ended. `expected` is how many files
        there are, as far as that is known: if they are many, notices begin with the first look.
        """
        with self._lock:
            last, notices = self._index, self._read()
            self._index, found = (
                None,
                None,
            )  # if this fails, what was read is lost, and the next look is in full
            if last and notices.complete and not in_full and self._is_fresh():
                found = self._updated(last, notices.paths, since)
            if found is None:
                self._outside = self._outside if last else set()
                expected = 0 if in_full else len(since.files) if since else expected
                found = self._scan(since, notices.new_folders, expected)
            self._index = found if self._inotify else None
            return found

    def _is_fresh(self) -> bool:
        return self._looked + MAX_AGE > time.monotonic() and _facts(self._root) == self._facts

    def _updated(self, last: StatIndex, paths: set[str], since: StatIndex | None) -> StatIndex | None:
        """The last index, but for these paths; None if that is not enough."""
        if since is not None and since is not last:
            return None
        paths |= self._linked
        files, ignored, linked = dict(last.files), dict(last.ignored), dict(last.linked)
        scan, now = Scanner(since=since), time.time_ns()
        # Without a notice nothing was written, so a hash is still right.
        sums = {
            path: known
            for path, known in last.sums.items()
            if path not in paths and (since or is_recent(files[path], now))
        }
        for path in paths:
            for each in (files, ignored, linked):
                each.pop(path, None)
            folder, name = os.path.split(path)
            rules = self._rules[f"{folder}/" if folder else ""]
            aside = is_ignored(rules, name, path, folder=False)
            try:
                with _opened(self._root / folder) as descriptor:
                    found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    known = stat_of(found)
                    if not aside:
                        scan.hash_if_new(descriptor, name, path, known)
            except FileNotFoundError:
                continue
            except OSError:
                return None
            old = last.files.get(path) or last.ignored.get(path)
            same = path in self._linked and old is not None and old.inode == known.inode
            if stat.S_ISDIR(known.mode) or (found.st_nlink > 1 and not same):
                return None
            (ignored if aside else files)[path] = known
            if found.st_nlink > 1 and not aside:
                linked[path] = found.st_nlink
        if len(files) > MAX_FILES or len(ignored) > MAX_FILES:
            return None
        changed = {"files": files, "sums": sums | scan.sums, "ignored": ignored, "linked": linked}
        return replace(last, **changed, touched=frozenset(paths))

    def _scan(self, since: StatIndex | None, new_folders: set[str], expected: int) -> StatIndex:
        """Look at everything; if that is much, all folders are watched from then on."""
        if self._inotify is None and self._usable and expected >= self._fewest:
            self._inotify = _Inotify()
        if self._inotify is None:
            return Scanner(since=since).index(self._root, NestedRules(self._root))
        self._facts, self._looked = _facts(self._root), time.monotonic()
        self._folders = {watch: each for watch, each in self._folders.items() if not each.in_index}
        scan = Scanner(since=since, on_folder=self._watch)
        index = scan.index(self._root, NestedRules(self._root))
        self._rules = scan.rules_in
        self._linked = {*scan.linked, *scan.ignored_linked}
        self._watch_outside(index, new_folders)
        self._usable = self._inotify.works and not index.cut and len(self._linked) <= MAX_LINKED
        self._usable = self._usable and len(self._folders) <= MAX_FOLDERS and _is_on_this_machine(self._root)
        if not self._usable:
            self.close()
        return index

    def _watch(self, descriptor: int, prefix: str, *, in_index: bool = True) -> None:
        if self._inotify and len(self._folders) <= MAX_FOLDERS:
            watch = self._inotify.add(descriptor, IN_INDEX if in_index else OUTSIDE)
            self._folders[watch] = WatchedFolder(prefix, in_index)

    def _watch_outside(self, index: StatIndex, new: Iterable[str]) -> None:
        """Watch the folders that the index leaves out, but `.git`, which is closed to commands."""
        inner = [each for each in index.unentered if os.path.basename(each) != GIT]
        if self._inotify and len(index.unentered) - len(inner) > MAX_REPOSITORIES:
            self._inotify.works = False
        tops = {*index.ignored_folders, *inner}
        waiting, self._outside = [*(tops - self._outside), *new], tops
        while waiting and self._inotify and len(self._folders) <= MAX_FOLDERS:
            path = waiting.pop()
            try:
                with _opened(self._root / path) as descriptor:
                    self._watch(descriptor, f"{path}/", in_index=False)
                    with os.scandir(descriptor) as entries:
                        names = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
                    waiting += [f"{path}/{name}" for name in names]
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                self._inotify.works = False  # what cannot be read may still be writable

    def _read(self) -> Notices:
        """What happened since the last time."""
        paths, new_folders, names, complete = set[str](), set[str](), _NameChanges(), True
        for watch, kind, cookie, name in self._inotify.read() if self._inotify else ():
            folder = self._folders.get(watch)
            if kind & IGNORED:
                self._folders.pop(watch, None)  # the folder is gone
                continue
            if folder is None:  # the queue was full
                complete = False
                self._outside.clear()
                continue
            path, of_folder = folder.prefix + name, bool(kind & OF_FOLDER)
            if path in OUR_NAMES and not of_folder:
                paths.add(path)
            elif path in OUR_NAMES:
                known = self._index and path in self._index.folders
                complete = complete and not known and not os.path.lexists(self._root / path)
            elif folder.in_index and name and not of_folder:
                paths.add(path)
                names.add(path, kind, cookie)
                complete = complete and name != GITIGNORE
            elif path or not kind & ATTRIBUTES:
                complete = False
                if of_folder and kind & (CREATED | MOVED_TO):
                    self._outside = self._outside - {path} if kind & CREATED else set()
                    new_folders |= set() if folder.in_index else {path}
        return Notices(paths, complete and names.are_plain(), new_folders)


class _NameChanges:
    """Names that were made, moved and removed, and whether each is still the one that notices told of.

    A name that was made may be a second one of another file. It is seen by the number of names of the file
    that has it, but not if the name was made and removed, or given to something else, in between.
    """

    def __init__(self) -> None:
        self._changes: dict[str, list[tuple[int, int]]] = {}
        self._moved_to: dict[int, str] = {}

    def add(self, path: str, kind: int, cookie: int) -> None:
        if kind & NAME_CHANGES:
            self._changes.setdefault(path, []).append((kind & NAME_CHANGES, cookie))
            if kind & MOVED_TO:
                self._moved_to[cookie] = path

    def are_plain(self) -> bool:
        return all(len(each) == 1 or self._is_replacement(each) for each in self._changes.values())

    def _is_replacement(self, changes: list[tuple[int, int]]) -> bool:
        """Whether a new file was moved to another name, as programs do that replace a file in one step."""
        (first, _), *others = changes
        target = self._moved_to.get(others[0][1], "")
        kinds = [first, *(kind for kind, _ in others)]
        return kinds == [CREATED, MOVED_FROM] and len(self._changes.get(target, ())) == 1


class _Inotify:
    """The kernel's notices; `works` is False if there are none, or not of all folders."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.works = self._descriptor >= 0

    def add(self, folder: int, kinds: int) -> int:
        """Watch an open folder; returns the number of the watch, always the same one for a folder."""
        watch: int = self._library.inotify_add_watch(
            self._descriptor, f"/proc/self/fd/{folder}".encode(), kinds
        )
        self.works = self.works and watch >= 0
        return watch

    def read(self) -> Iterator[tuple[int, int, int, str]]:
        """The number of the watch, kind, cookie and name of each; no watch has the notice of a full queue."""
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, BUFFER_BYTES):
                at = 0
                while at < len(data):
                    watch, kind, cookie, length = EVENT.unpack_from(data, at)
                    name = data[at + EVENT.size : at + EVENT.size + length].rstrip(b"\0")
                    at += EVENT.size + length
                    yield watch, kind, cookie, os.fsdecode(name)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def _facts(root: Path) -> tuple[object, ...]:
    """What must be the same for notices to be enough: the folder, its mounts, and the rules from above."""
    found = os.stat(root)
    return found.st_dev, found.st_ino, _mounts(), NestedRules(root).above


def _mounts() -> bytes:
    """The mounts that the kernel lists; empty if they cannot be read."""
    with suppress(OSError):
        return read_file(MOUNTS, MAX_MOUNTS_BYTES)
    return b""


def _is_on_this_machine(root: Path) -> bool:
    """Whether the whole workspace is on one file system whose changes all go through this kernel."""
    place = str(root).translate({ord(each): f"\\{ord(each):03o}" for each in " \t\n\\"})
    best, found = "", ""
    for line in os.fsdecode(_mounts()).splitlines():
        words = line.split(" ")
        point, kind = words[4], words[words.index("-") + 1]
        if point.startswith(f"{place}/"):
            return False
        if len(point) >= len(best) and (point in ("/", place) or place.startswith(f"{point}/")):
            best, found = point, kind
    return found in FILE_SYSTEMS


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, FOLDER_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
