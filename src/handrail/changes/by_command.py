"""What a command changed, as a change set: told by two looks at the workspace, one before and one after it.

Somebody else may have written in the same time; nobody can tell who it was, and the words do not say so.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.changes.change_set import sha256
from handrail.changes.copies import EACH, Copies, may_hold_secret
from handrail.changes.trace.blocks import changed_ranges
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import ChangedRange, FileChange
from handrail.workspace.files import Workspace
from handrail.workspace.found import LARGEST, OTHER, Content, Found, Step
from handrail.workspace.git_index import Entry
from handrail.workspace.ignore import NAME as IGNORE_FILE
from handrail.workspace.index import COARSE, UNSURE, FileStat, StatIndex, differences, stat_of
from handrail.workspace.names import STATE_FOLDERS
from handrail.workspace.places import printable
from handrail.workspace.writer import Writer

MOST_LISTED = 2_000
"""Files of one change set; of more only the number is told."""
EACH_OBJECT = 4_000_000
"""Bytes of a content that git is asked for."""
MOST_STORED = 32_000_000
"""Bytes of contents that are stored for one command."""
MOST_HASHED = 512_000_000
ATTRIBUTES = ".gitattributes"
OURS = (".handrail-tmp", ".handrail-old", ".handrail-back")
"""Names that lie beside a file while another session changes it."""


class Before(NamedTuple):
    """The workspace as a command found it."""

    looked: StatIndex
    copies: Copies
    objects: Mapping[str, Entry]
    """What git has of it."""
    began_ns: int


class Touched(NamedTuple):
    """Paths that do not look as they did."""

    paths: tuple[str, ...]
    """Those that were there before come first."""
    unlisted: int
    ignored: int
    """Ignored files that look different too; they are counted and nothing more."""
    unsure: bool
    """What is ignored has changed: files that are new in the index may have been there before."""


class Changed(NamedTuple):
    """What came of a command."""

    files: tuple[FileChange, ...]
    folders: tuple[str, ...]
    contents: tuple[bytes, ...]
    """To be stored with the event."""
    unlisted: int
    ignored: int


def touched(workspace: Workspace, before: Before, after: StatIndex) -> Touched:
    """What to look at more closely."""
    found = differences(before.looked, after)
    there, new = [*found.changed, *found.removed], list(found.added)
    if before.looked.cut or after.cut:
        there, new = list(found.changed), []  # of what lies beyond the limit nothing is known
    unsure = any(path.rpartition("/")[2] == IGNORE_FILE for path in (*there, *new))
    if unsure:
        new = [path for path in new if _is_new(path, before, after)]
    paths = [path for path in (*sorted(there), *new) if not _is_ours(workspace, path)]
    old, now = before.looked.ignored, after.ignored
    ignored = sum(path not in after.files and now.get(path) != found for path, found in old.items())
    ignored += sum(path not in old and path not in before.looked.files for path in now)
    return Touched(tuple(paths[:MOST_LISTED]), len(paths[MOST_LISTED:]), ignored, unsure)


def wanted_objects(before: Before, paths: Iterable[str]) -> dict[str, Entry]:
    """What git has to be asked for: contents that are stored there as they were in the file, or nearly."""
    paths = list(paths)
    if any(path.rpartition("/")[2] == ATTRIBUTES for path in paths):
        return {}  # how git converted the files is no longer to be found out
    wanted, room = {}, MOST_STORED
    for path in paths:
        found, entry = before.looked.files.get(path), before.objects.get(path)
        kept = path in before.copies or may_hold_secret(path)
        if found and entry and not kept and entry.is_of(found) and found.size <= min(EACH_OBJECT, room):
            wanted[path] = entry
            room -= found.size
    return wanted


def as_in_file(data: bytes, size: int) -> bytes | None:
    """A content of git's as the file of this size had it, when only line endings can differ; None if not.

    Git makes one byte of CR LF. So a file as long as the content has none, and one that is longer by the
    number of its lines has nothing else.
    """
    if len(data) == size:
        return data
    lines = data.count(b"\n")
    if len(data) + lines == size and b"\r\n" not in data:
        return data.replace(b"\n", b"\r\n")
    return None


def what_changed(
    root: Path, before: Before, after: StatIndex, found: Touched, objects: Mapping[str, bytes]
) -> Changed:
    """The change set, with as much of the contents as is needed to go back and as is kept at all."""
    comparing = _Comparing(root, before, after, objects, unsure=found.unsure)
    files = tuple(comparing.files(found.paths))
    made = sorted(after.folders - before.looked.folders) if files else []
    folders = tuple(path for path in made[:MOST_LISTED] if printable(path) == path)
    return Changed(files, folders, tuple(comparing.contents.values()), found.unlisted, found.ignored)


def without_others(changed: Changed, others: Sequence[Step]) -> Changed:
    """The same without what other sessions did meanwhile, told by their steps, oldest first.

    A file that is theirs only in part stays listed, and nothing goes back over it.
    """
    ways: dict[str, list[Step]] = {}
    for step in others:
        ways.setdefault(step.path, []).append(step)
    files = []
    for file in changed.files:
        way = ways.get(file.path)
        if way is None:
            files.append(file)
        elif (way[0].old, way[-1].new, way[-1].new_mode) != (
            file.old_sha256,
            file.new_sha256,
            file.new_mode,
        ):
            files.append(file.model_copy(update={"restorable": False}))
    return changed._replace(files=tuple(files))


class _Was(NamedTuple):
    """A file as it was; its hash is empty where there was none, and where it is not known."""

    exists: bool
    sha256: str = ""
    mode: int | None = None
    data: bytes | None = None


class _Comparing:
    def __init__(
        self, root: Path, before: Before, after: StatIndex, objects: Mapping[str, bytes], *, unsure: bool
    ) -> None:
        self.contents: dict[str, bytes] = {}
        self._root = root
        self._writer = Writer(root)
        self._before = before
        self._after = after
        self._objects = objects
        self._unsure = unsure
        self._room = MOST_STORED
        self._hashed = MOST_HASHED

    def files(self, paths: Iterable[str]) -> Iterator[FileChange]:
        for path in paths:
            if change := self._file(path):
                yield change

    def _file(self, path: str) -> FileChange | None:
        now = self._now(path)
        was = self._was(path, now)
        if self._is_same(path, was, now.found):
            return None
        hidden = may_hold_secret(path) or printable(path) != path
        known = bool(was.sha256) if was.exists else not self._unsure
        restorable = known and not hidden and now.found.sha256 != OTHER
        if restorable and was.exists:
            restorable = self._keep(was.sha256, was.data)
        if not hidden and now.data is not None and len(now.data) <= EACH:
            self._keep(now.found.sha256, now.data)
        added, removed = counted(was.data, now.data)
        return FileChange(
            path=printable(path),
            op="create" if not was.exists else "update" if now.found.sha256 else "delete",
            old_sha256=was.sha256,
            new_sha256=now.found.sha256,
            old_mode=was.mode,
            new_mode=now.found.mode,
            added=added,
            removed=removed,
            size=len(now.data) if now.data is not None else None,
            restorable=restorable,
            ranges=self._ranges(was, now),
        )

    def _ranges(self, was: _Was, now: Content) -> tuple[ChangedRange, ...]:
        known = now.data is not None and (was.data is not None or not was.exists)
        return changed_ranges(was.data, now.data) if known else ()

    def _now(self, path: str) -> Content:
        found = self._after.files.get(path)
        size = found.size if found else 0
        closed = Content(Found(OTHER, stat.S_IMODE(found.mode) if found else None))
        if size > min(self._hashed, LARGEST):
            return closed
        self._hashed -= size
        try:
            return self._writer.read(path) if size <= EACH_OBJECT else Content(self._writer.look(path))
        except (OSError, PathProblem):
            return closed

    def _was(self, path: str, now: Content) -> _Was:
        found = self._before.looked.files.get(path)
        if found is None:
            return _Was(exists=path in self._before.looked.ignored)
        if not stat.S_ISREG(found.mode):
            return _Was(exists=True)
        mode = stat.S_IMODE(found.mode)
        copy = self._before.copies.get(path)
        data = copy.data if copy else self._objects.get(path)
        if data is None and self._only_mode(path, found):
            data = now.data
        if data is not None:
            return _Was(exists=True, sha256=sha256(data), mode=mode, data=data)
        known = self._before.looked.sums.get(path, UNSURE)
        # The hash alone tells that nothing changed; what is not kept cannot be gone back to.
        return _Was(exists=True, sha256=known if known == now.found.sha256 else "", mode=mode)

    def _only_mode(self, path: str, found: FileStat) -> bool:
        """Whether a file was given other permissions and no other content, by its times."""
        now = self._after.files.get(path)
        return now is not None and now[:2] == found[:2] and now.inode == found.inode

    def _is_same(self, path: str, was: _Was, now: Found) -> bool:
        if not was.exists and not now.sha256:
            return True  # it came and went
        if now.sha256 not in ("", OTHER) and (was.sha256, was.mode) == (now.sha256, now.mode):
            return True
        found = self._before.looked.files.get(path)
        if found is None or path in self._after.files:
            return False
        try:  # where it was, and only ignored now
            return stat_of(os.lstat(self._root / path)) == found
        except OSError:
            return False

    def _keep(self, digest: str, data: bytes | None) -> bool:
        """Whether there is room to store a content."""
        if data is None:
            return False
        if digest not in self.contents:
            if len(data) > self._room:
                return False
            self._room -= len(data)
            self.contents[digest] = data
        return True


def counted(old: bytes | None, new: bytes | None) -> tuple[int, int]:
    """Lines that came and went, in time that follows their number; where a line stands does not count."""
    before, after = Counter(_lines(old)), Counter(_lines(new))
    return (after - before).total(), (before - after).total()


def _lines(data: bytes | None) -> list[bytes]:
    if not data or b"\0" in data:
        return []
    return data.removesuffix(b"\n").split(b"\n")


def _is_new(path: str, before: Before, after: StatIndex) -> bool:
    """Whether a file that was not looked at before can have been made since."""
    return after.files[path].ctime_ns >= before.began_ns - COARSE


def _is_ours(workspace: Workspace, path: str) -> bool:
    if path.endswith(OURS) or any(name in path.lower().split("/") for name in STATE_FOLDERS):
        return True
    return any((workspace.root / path).is_relative_to(folder) for folder in workspace.state_folders)
