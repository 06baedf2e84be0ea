"""Find the protected files of a workspace: git's settings and hooks, intents, Handrail's folders.

Links are never followed. Every group has a limit of its own, so that junk in one keeps nothing of another
from being saved; a group that passes its limit counts as changed.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from msgspec.structs import replace

from handrail.config.open_file import open_file
from handrail.storage.protected_copies import EntryKind, Manifest, SavedEntry, Stamp
from handrail.workspace.intents_file import IGNORE_FILES, INTENTS_FILE
from handrail.workspace.paths import open_folder
from handrail.workspace.sensitive_names import GIT, STATE_FILES, STATE_FOLDERS

MAX_ENTRIES = 5_000  # of a group
MAX_DEPTH = 12
RECENT = 20_000_000  # nanoseconds in which a second write may leave a file's times the same
RECENT_SECOND = 2_100_000_000  # where the file system counts in seconds

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
GIT_SETTINGS = ("config", "config.worktree", "commondir", "gitdir")
GIT_TREES = ("hooks", "info")
WORKTREE_SETTINGS = ("config.worktree", "commondir", "gitdir")
ALTERNATES = ("alternates", "http-alternates")
GIT_FOLDER = b"git"  # the content of a submodule's git folder, where only some files are protected
GIT_FILE_BYTES = 4_096  # of a `.git` that is a file


class Found(NamedTuple):
    entries: dict[str, SavedEntry]
    unsaved: list[str]


def scan(
    root: Path,
    repositories: Iterable[str] = (),
    links: Iterable[str] = (),
    known: Mapping[str, SavedEntry] | None = None,
) -> Found:
    """The protected files as they are now; with `known`, what is new in them is named but not entered."""
    scanner = _Scanner(root, known)
    try:
        _scan(scanner, repositories, links)
    finally:
        scanner.close()
    return scanner.found


def _scan(scanner: "_Scanner", repositories: Iterable[str], links: Iterable[str]) -> None:
    for git in dict.fromkeys((GIT, *repositories)):
        scanner.repository(git)
    for path in (INTENTS_FILE, *IGNORE_FILES, *STATE_FILES, *links):
        scanner.single(path)
    for path in STATE_FOLDERS:
        with scanner.group(path):
            scanner.tree(path)


def group_of(path: str) -> str:
    """The part of the protected files that shares a limit on bytes with this one."""
    if path in (INTENTS_FILE, *IGNORE_FILES):
        return path
    names = path.split("/")
    return "/".join(names[: names.index(GIT) + 2]) if GIT in names else names[0]


def is_unsaved(path: str, manifest: Manifest) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in manifest.unsaved)


def entry_of(found: os.stat_result) -> SavedEntry:
    """An entry without its content."""
    mode = found.st_mode
    kind: EntryKind = (
        "file"
        if stat.S_ISREG(mode)
        else "link"
        if stat.S_ISLNK(mode)
        else "folder"
        if stat.S_ISDIR(mode)
        else "other"
    )
    return SavedEntry(kind, mode & 0o7777, (found.st_uid, found.st_gid), found.st_size, _stamp(found, kind))


def _stamp(found: os.stat_result, kind: EntryKind) -> Stamp:
    if kind == "folder":
        return found.st_dev, found.st_ino
    recent = RECENT if found.st_ctime_ns % 1_000_000_000 else RECENT_SECOND
    if max(found.st_mtime_ns, found.st_ctime_ns) > time.time_ns() - recent:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class _TooMany(Exception): ...


class _Scanner:
    def __init__(self, root: Path, known: Mapping[str, SavedEntry] | None) -> None:
        self.found = Found({}, [])
        self._root = root
        self._known = known
        self._left = MAX_ENTRIES
        self._opened: list[tuple[str, int]] = []

    def close(self) -> None:
        while self._opened:
            os.close(self._opened.pop()[1])

    @contextmanager
    def group(self, name: str) -> Iterator[None]:
        self._left = MAX_ENTRIES
        try:
            yield
        except _TooMany:
            self.found.unsaved.append(name)

    def single(self, path: str) -> None:
        self._left = MAX_ENTRIES
        folder, _, name = path.rpartition("/")
        self._entries(folder or ".", (name,))

    def repository(self, git: str) -> None:
        """A `.git`: a folder, or a file or link that leads to one in the workspace."""
        self.single(git)
        folder = _git_folder(self._root, git, self.found.entries.get(git))
        if folder and (self._known is None or folder in self._known or git in self._known):
            with self.group(folder):
                self._git_settings(folder)
            with self.group(f"{folder}/modules"):
                self._modules(f"{folder}/modules", 0)
            with self.group(f"{folder}/worktrees"):
                for path in self._enter(folder, ("worktrees",)):
                    for inner in self._enter(path):
                        self._entries(inner, WORKTREE_SETTINGS)

    def tree(self, path: str) -> None:
        """Everything below a folder, and its own entry."""
        parent, _, name = path.rpartition("/")
        for folder in self._enter(parent or ".", (name,)):
            self._below(folder, 0)

    def _below(self, folder: str, depth: int) -> None:
        if depth == MAX_DEPTH:
            raise _TooMany
        for inner in self._enter(folder):
            self._below(inner, depth + 1)

    def _git_settings(self, folder: str) -> None:
        for tree in self._enter(folder, (*GIT_SETTINGS, *GIT_TREES)):
            self._below(tree, 0)
        self._entries(f"{folder}/objects/info", ALTERNATES)

    def _modules(self, folder: str, depth: int) -> None:
        """The git folders of submodules, whose names may have several parts."""
        if depth == MAX_DEPTH:
            raise _TooMany
        parent, _, name = folder.rpartition("/")
        inside = [folder] if depth else self._enter(parent or ".", (name,))
        for path in inside:
            for inner in self._enter(path):
                if self._is_git_folder(inner):
                    self._git_settings(inner)
                    self._modules(f"{inner}/modules", 0)
                else:
                    self._modules(inner, depth + 1)

    def _is_git_folder(self, path: str) -> bool:
        if self._known is not None:
            return self._known[path].content == GIT_FOLDER
        # Either of them: a command may have removed the other.
        found = any((self._root / path / name).is_file() for name in ("HEAD", "config"))
        if found:
            self.found.entries[path] = replace(self.found.entries[path], content=GIT_FOLDER)
        return found

    def _enter(self, folder: str, wanted: tuple[str, ...] | None = None) -> list[str]:
        """Record all or the wanted entries of a folder; returns the folders of them that may be entered."""
        entries = self._entries(folder, wanted)
        inside = [path for path, entry in entries.items() if entry.kind == "folder"]
        if self._known is None:
            return inside
        known = self._known
        return [path for path in inside if path in known and known[path].kind == "folder"]

    def _entries(self, folder: str, wanted: tuple[str, ...] | None) -> dict[str, SavedEntry]:
        prefix = "" if folder == "." else f"{folder}/"
        found: dict[str, SavedEntry] = {}
        with suppress(OSError):
            descriptor = self._descriptor(folder)
            # By name where that is possible: the folder may have very many other entries.
            for name in os.listdir(descriptor) if wanted is None else wanted:
                try:
                    stated = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                except OSError:
                    continue
                if self._known is None and self._left == 0:
                    raise _TooMany
                self._left -= 1
                found[prefix + name] = self.found.entries[prefix + name] = entry_of(stated)
        return found

    def _descriptor(self, folder: str) -> int:
        """The folder, opened without following a link; those above it stay open for the next one."""
        names = ["", *(() if folder == "." else folder.split("/"))]
        common = 0
        while common < min(len(names), len(self._opened)) and self._opened[common][0] == names[common]:
            common += 1
        while len(self._opened) > common:
            os.close(self._opened.pop()[1])
        for name in names[common:]:
            above = self._opened[-1][1] if self._opened else None
            descriptor = os.open(name or self._root, FOLDER_FLAGS, dir_fd=above)
            self._opened.append((name, descriptor))
        return self._opened[-1][1]


def _git_folder(root: Path, git: str, entry: SavedEntry | None) -> str:
    """The folder that a `.git` is or names, relative to the workspace; empty if it is elsewhere."""
    if entry is None or entry.kind == "folder":
        return git if entry else ""
    place = root / git
    try:
        target = place
        if entry.kind == "file":
            data = read_start(root, git, GIT_FILE_BYTES)
            if not data.startswith(b"gitdir:"):
                return ""
            target = place.parent / os.fsdecode(data.partition(b":")[2].strip())
        return str(target.resolve().relative_to(root))
    except (OSError, ValueError, RuntimeError):
        return ""


def read_start(root: Path, path: str, most: int) -> bytes:
    """The first bytes of a regular file in the workspace; raises OSError."""
    with open_regular(root, path) as descriptor:
        return os.read(descriptor, most)


@contextmanager
def open_regular(root: Path, path: str) -> Iterator[int]:
    """A descriptor of a regular file, reached without following a link; raises OSError."""
    with (
        open_folder((root / path).parent, root=root) as folder,
        open_file(PurePosixPath(path).name, folder=folder, follow=False) as file,
    ):
        yield file.descriptor
