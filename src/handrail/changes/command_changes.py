"""What a command changed, as a change set: copies before it, a comparison after it.

Somebody else may have written at the same time; that cannot be told apart.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from handrail.changes.change_set import sha256
from handrail.changes.saved_copies import FileCopy, may_hold_secret, read_copies
from handrail.changes.trace.line_blocks import changed_ranges
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import FileChange, FolderMode
from handrail.workspace.file_step import (
    LINK_MODE,
    MAX_BYTES,
    NOT_REGULAR,
    PIPE_CONTENT,
    FileContent,
    FileState,
    FileStep,
)
from handrail.workspace.files import Workspace
from handrail.workspace.git_index import IndexEntry
from handrail.workspace.gitignore import GITIGNORE as IGNORE_FILE
from handrail.workspace.paths import path_text, printable
from handrail.workspace.sensitive_names import GIT, is_protected_name
from handrail.workspace.stat_index import COARSE, UNKNOWN_HASH, FileStat, StatIndex, differences, stat_of
from handrail.workspace.writer import Writer

MAX_COPY_BYTES = 256_000
MAX_KNOWN_COPY_BYTES = 1_000_000
"""For a file that the session has shown or changed; no larger one can be edited."""
MAX_COPIES = 2_000
MAX_COPIED_BYTES = 20_000_000


Copies = Mapping[str, FileCopy]


def take_copies(
    root: Path,
    index: StatIndex,
    *,
    earlier: Copies,
    known: Collection[str],
    elsewhere: Callable[[str, FileStat], bool],
    touched: Collection[str] | None = None,
) -> Copies:
    """Copies of files that are not kept `elsewhere`, known ones first; unchanged files are not read again.

    With `touched`, only these files can differ from when the `earlier` copies were taken.
    """
    copies: dict[str, FileCopy] = {}
    rest: Collection[str] = index.files
    if touched is not None:
        rest = [path for path in {*touched, *index.sums} if path in index.files]
        copies = {
            path: copy for path, copy in earlier.items() if path not in touched and path not in index.sums
        }
    room = MAX_COPIED_BYTES - sum(len(copy.data) for copy in copies.values())
    first = [path for path in known if path in index.files]
    for limit, paths in ((MAX_KNOWN_COPY_BYTES, first), (MAX_COPY_BYTES, rest)):
        wanted = (
            path
            for path in paths
            if path not in copies
            and (found := index.files[path]).size <= limit
            and (stat.S_ISLNK(found.mode) or (stat.S_ISREG(found.mode) and not elsewhere(path, found)))
        )
        for path, copy in _copies(root, index, wanted, earlier):
            if len(copies) == MAX_COPIES or len(copy.data) > room:
                if touched is None:
                    return copies
                return take_copies(root, index, earlier=earlier, known=known, elsewhere=elsewhere)
            copies[path] = copy
            room -= len(copy.data)
    return copies


def _copies(
    root: Path, index: StatIndex, paths: Iterable[str], earlier: Copies
) -> Iterator[tuple[str, FileCopy]]:
    for _, members in groupby(paths, key=os.path.dirname):
        unread = []
        for path in members:
            copy = earlier.get(path)
            # A file written at the time of the snapshot may have been written again with the same times.
            if copy and copy.found == index.files[path] and path not in index.sums:
                yield path, copy
            elif not may_hold_secret(path):
                unread.append(path)
        yield from read_copies(root, unread, index.files)


class RecordLimits(NamedTuple):
    listed: int  # files in one change set; more are only counted
    stored: int  # bytes of all contents that are stored for one command


USUAL_LIMITS = RecordLimits(2_000, 32_000_000)
FULL_LIMITS = RecordLimits(20_000, 256_000_000)
MAX_OBJECT_BYTES = 4_000_000
"""Of one content that git is asked for."""
MAX_HASHED_BYTES = 512_000_000
ATTRIBUTES_FILE = ".gitattributes"
TEMPORARY_SUFFIXES = (".handrail-tmp", ".handrail-old", ".handrail-back")
"""Files that another session has beside a file while it changes it."""


class SavedFiles(Protocol):
    def __contains__(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes | None: ...


class WorkspaceBefore(NamedTuple):
    snapshot: StatIndex
    copies: Copies
    objects: Mapping[str, IndexEntry]
    began_ns: int
    saved: "SavedFiles | None" = None
    """In mode `sandbox`: all files, and an index of everything."""
    readable: Collection[str] = ()
    """Files that look like secrets, and are recorded like others."""

    @property
    def limits(self) -> RecordLimits:
        return FULL_LIMITS if self.saved else USUAL_LIMITS


class TouchedPaths(NamedTuple):
    paths: tuple[str, ...]
    """Those that existed before come first."""
    unlisted: int
    ignored: int
    unsure: bool
    """The ignore rules changed: files that are new in the index may have existed before."""


class CommandChanges(NamedTuple):
    files: tuple[FileChange, ...]
    folders: tuple[str, ...]
    contents: tuple[bytes, ...]
    unlisted: int
    ignored: int
    folder_modes: tuple[FolderMode, ...] = ()


def find_touched(workspace: Workspace, before: WorkspaceBefore, after: StatIndex) -> TouchedPaths:
    """The paths whose contents must be compared."""
    found = differences(before.snapshot, after)
    known, new = [*found.changed, *found.removed], list(found.added)
    if before.snapshot.cut:
        known, new = list(found.changed), []  # nothing is known about files beyond the limit
    elif after.cut:  # a file that was there before may only be beyond the limit now
        files = before.snapshot.files
        gone = [path for path in found.removed if not _is_unchanged(workspace.root / path, files[path])]
        known = [*found.changed, *gone]
    unsure = not before.saved and any(path.rpartition("/")[2] == IGNORE_FILE for path in (*known, *new))
    if unsure:  # only those that can have been made since
        new = [path for path in new if after.files[path].ctime_ns >= before.began_ns - COARSE]
    paths = [path for path in (*sorted(known), *new) if not _is_ours(workspace, path)]
    old, now = before.snapshot.ignored, after.ignored
    ignored = sum(path not in after.files and now.get(path) != found for path, found in old.items())
    ignored += sum(path not in old and path not in before.snapshot.files for path in now)
    listed = before.limits.listed
    return TouchedPaths(tuple(paths[:listed]), len(paths[listed:]), ignored, unsure)


def _is_unchanged(path: Path, found: FileStat) -> bool:
    with suppress(OSError):
        return stat_of(os.lstat(path)) == found
    return False


def git_objects_needed(before: WorkspaceBefore, paths: Iterable[str]) -> dict[str, IndexEntry]:
    """Git objects to read: contents stored there as they were in the file, but perhaps for line endings."""
    paths = list(paths)
    if any(path.rpartition("/")[2] == ATTRIBUTES_FILE for path in paths):
        return {}  # how git converted the files is no longer known
    wanted, room = {}, before.limits.stored
    for path in paths:
        found, entry = before.snapshot.files.get(path), before.objects.get(path)
        kept = path in before.copies or bool(before.saved and path in before.saved) or may_hold_secret(path)
        if found and entry and not kept and entry.is_of(found) and found.size <= min(MAX_OBJECT_BYTES, room):
            wanted[path] = entry
            room -= found.size
    return wanted


def working_tree_bytes(data: bytes, size: int) -> bytes | None:
    """A git object as a file of this size had it, if only line endings can differ; else None.

    Git stores CR LF as one byte. So a file of the same size has no CR LF, and in one that is longer by the
    number of lines every line has it.
    """
    if len(data) == size:
        return data
    lines = data.count(b"\n")
    if len(data) + lines == size and b"\r\n" not in data:
        return data.replace(b"\n", b"\r\n")
    return None


def compare_after(
    root: Path, before: WorkspaceBefore, after: StatIndex, found: TouchedPaths, objects: Mapping[str, bytes]
) -> CommandChanges:
    """The change set, with the contents needed to undo it, as far as they may be stored."""
    comparison = _Comparison(root, before, after, objects, unsure=found.unsure)
    files = tuple(change for path in found.paths if (change := comparison.change(path)))
    files += tuple(_unentered_changes(before, after)) if before.saved else ()
    modes = _folder_modes(before, after) if not found.unsure and (files or before.saved) else []
    modes = modes[: before.limits.listed]
    made = tuple(each.path for each in modes if each.old is None)
    contents = tuple(comparison.contents.values())
    return CommandChanges(files, made, contents, found.unlisted, found.ignored, tuple(modes))


def _unentered_changes(before: WorkspaceBefore, after: StatIndex) -> Iterator[FileChange]:
    """Folders that were made or removed, and are not looked into: the `.git` of repositories, above all."""
    old, new = set(before.snapshot.unentered), set(after.unentered)
    ours = after.folders.keys() | before.snapshot.folders.keys()
    for path in sorted((old ^ new) - ours):
        old_hash, new_hash = ("", NOT_REGULAR) if path in new else (NOT_REGULAR, "")
        yield FileChange(
            path=printable(path),
            op="create" if path in new else "delete",
            old_sha256=old_hash,
            new_sha256=new_hash,
            restorable=False,
        )


def _folder_modes(before: WorkspaceBefore, after: StatIndex) -> list[FolderMode]:
    old, new = before.snapshot.folders, after.folders
    if before.snapshot.cut or after.cut:
        return []
    hidden = {*before.snapshot.unentered, *after.unentered}
    return [
        FolderMode(path_text(path), old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if old.get(path) != new.get(path) and path not in hidden and not _is_state(path)
    ]


def reopen(root: Path, after: StatIndex) -> bool:
    """Give the owner access to what a command has closed, to record it; whether that was needed."""
    writer, found = Writer(root), False
    closed = [(path, 0o700) for path in after.unentered if os.path.basename(path) != GIT]
    closed += [
        (path, 0o400)
        for path, each in after.files.items()
        if stat.S_ISREG(each.mode) and not each.mode & 0o400
    ]
    for path, needed in closed:
        with suppress(OSError, PathProblem):
            mode = stat.S_IMODE(os.lstat(root / path).st_mode)
            if mode & needed != needed:
                writer.set_mode(path, mode | needed)
                found = True
    return found


def without_other_sessions(changed: CommandChanges, others: Sequence[FileStep]) -> CommandChanges:
    """The same without what other sessions changed meanwhile, given by their steps, oldest first.

    A file that is only partly theirs stays listed, but is not restorable.
    """
    theirs: dict[str, list[FileStep]] = {}
    for step in others:
        theirs.setdefault(step.path, []).append(step)
    files = []
    for file in changed.files:
        steps = theirs.get(file.path)
        if steps is None:
            files.append(file)
            continue
        whole = (steps[0].old, steps[-1].new, steps[-1].new_mode)
        if whole != (file.old_sha256, file.new_sha256, file.new_mode):
            files.append(replace(file, restorable=False))
    return changed._replace(files=tuple(files))


class _FileBefore(NamedTuple):
    """A file before the command; its hash is empty if there was none, or it is not known."""

    exists: bool
    sha256: str = ""
    mode: int | None = None
    data: bytes | None = None


class _Comparison:
    def __init__(
        self,
        root: Path,
        before: WorkspaceBefore,
        after: StatIndex,
        objects: Mapping[str, bytes],
        *,
        unsure: bool,
    ) -> None:
        self.contents: dict[str, bytes] = {}
        self._root = root
        self._writer = Writer(root)
        self._before = before
        self._after = after
        self._objects = objects
        self._unsure = unsure
        self._room = before.limits.stored
        self._hashed = MAX_HASHED_BYTES

    def change(self, path: str) -> FileChange | None:
        now = self._now(path)
        was = self._was(path, now)
        if self._is_same(path, was, now.found):
            return None
        hidden = may_hold_secret(path) and path not in self._before.readable
        known = bool(was.sha256) if was.exists else not self._unsure
        # In mode sandbox no command can have written a secret into a new file.
        new_in_sandbox = self._before.saved is not None and not was.exists
        restorable = known and (not hidden or new_in_sandbox) and now.found.sha256 != NOT_REGULAR
        if restorable and was.exists:
            restorable = self._keep(was.sha256, was.data)
        if not hidden and now.data is not None and len(now.data) <= MAX_COPY_BYTES:
            self._keep(now.found.sha256, now.data)
        before, after = Counter(_lines(was.data)), Counter(_lines(now.data))
        comparable = now.data is not None and (was.data is not None or not was.exists)
        return FileChange(
            path=printable(path),
            raw=os.fsencode(path).hex() if printable(path) != path else "",
            op="create" if not was.exists else "update" if now.found.sha256 else "delete",
            old_sha256=was.sha256,
            new_sha256=now.found.sha256,
            old_mode=was.mode,
            new_mode=now.found.mode,
            added=(after - before).total(),
            removed=(before - after).total(),
            size=len(now.data) if now.data is not None else None,
            restorable=restorable,
            ignored=self._is_ignored(path),
            ranges=changed_ranges(was.data, now.data) if comparable else (),
        )

    def _is_ignored(self, path: str) -> bool:
        if self._before.saved is None:
            return False
        return path in self._before.snapshot.ignored or path in self._after.ignored

    def _now(self, path: str) -> FileContent:
        found = self._after.files.get(path)
        if found is None and path in self._after.folders:
            return FileContent()  # a folder is in its place
        size = found.size if found else 0
        unreadable = FileContent(FileState(NOT_REGULAR, stat.S_IMODE(found.mode) if found else None))
        if MAX_BYTES >= size > self._hashed:
            return unreadable
        self._hashed -= size if size <= MAX_BYTES else 0
        try:
            if size <= MAX_OBJECT_BYTES:
                return self._writer.read(path)
            return FileContent(self._writer.look(path))
        except (OSError, PathProblem):
            return unreadable

    def _was(self, path: str, now: FileContent) -> _FileBefore:
        found = self._before.snapshot.files.get(path)
        if found is None:
            return _FileBefore(exists=path in self._before.snapshot.ignored)
        if stat.S_ISFIFO(found.mode):
            digest = sha256(PIPE_CONTENT)
            return _FileBefore(exists=True, sha256=digest, mode=found.mode, data=PIPE_CONTENT)
        if not stat.S_ISREG(found.mode) and not stat.S_ISLNK(found.mode):
            return _FileBefore(exists=True)
        mode = LINK_MODE if stat.S_ISLNK(found.mode) else stat.S_IMODE(found.mode)
        copy, saved = self._before.copies.get(path), self._before.saved
        data = copy.data if copy else saved.read(path) if saved and path in saved else self._objects.get(path)
        after = self._after.files.get(path)
        if data is None and after and after[:2] == found[:2] and after.inode == found.inode:
            data = now.data  # by its times only the permissions changed
        if data is not None:
            return _FileBefore(exists=True, sha256=sha256(data), mode=mode, data=data)
        known = self._before.snapshot.sums.get(path, UNKNOWN_HASH)
        # The hash alone shows that nothing changed; a content that is not kept cannot be restored.
        return _FileBefore(exists=True, sha256=known if known == now.found.sha256 else "", mode=mode)

    def _is_same(self, path: str, was: _FileBefore, now: FileState) -> bool:
        if not was.exists and not now.sha256:
            return True  # it was created and removed
        if now.sha256 not in ("", NOT_REGULAR) and (was.sha256, was.mode) == (now.sha256, now.mode):
            return True
        found = self._before.snapshot.files.get(path)
        if found is None or path in self._after.files:
            return False
        try:  # it is unchanged, but ignored now
            return stat_of(os.lstat(self._root / path)) == found
        except OSError:
            return False

    def _keep(self, digest: str, data: bytes | None) -> bool:
        """Store a content; False where there is no room for it."""
        if data is None:
            return False
        if digest not in self.contents:
            if len(data) > self._room:
                return False
            self._room -= len(data)
            self.contents[digest] = data
        return True


def _lines(data: bytes | None) -> list[bytes]:
    if not data or b"\0" in data:
        return []
    return data.removesuffix(b"\n").split(b"\n")


def _is_state(path: str) -> bool:
    return is_protected_name(path.split("/", maxsplit=1)[0])


def _is_ours(workspace: Workspace, path: str) -> bool:
    if path.endswith(TEMPORARY_SUFFIXES) or _is_state(path):
        return True
    return any((workspace.root / path).is_relative_to(folder) for folder in workspace.state_folders)
