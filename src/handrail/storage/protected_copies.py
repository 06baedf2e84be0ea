"""Copies of the workspace's protected files, as they have to be while commands run.

They are in the folder of the workspace's log, which no command can read or write:

    protected/lock       held while files are compared, restored, or written by Handrail itself
    protected/manifest   each protected file as it has to be; `blobs/` has the contents
    protected/running/   a locked file for each running command; that of a killed Handrail is not locked
    protected/reports    what was found changed while these commands ran
    quarantine/          what was in the place of a restored file
"""

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from msgspec import DecodeError, msgpack
from msgspec.structs import replace

from handrail.config.files import FileLock, is_locked
from handrail.config.places import make_private
from handrail.protocol.errors import StorageBusy
from handrail.protocol.ids import new_id
from handrail.protocol.values import Value, to_json

FOLDER = "protected"
QUARANTINE = "quarantine"
LOCK_SECONDS = 10.0
ANY_MODE = -1  # of a file that Handrail itself is about to make

EntryKind = Literal["file", "link", "folder", "other"]
Stamp = tuple[int, ...]


class SavedEntry(Value):
    """A file, link or folder as it has to be."""

    kind: EntryKind
    mode: int = ANY_MODE
    owner: tuple[int, int] = (-1, -1)
    size: int = 0
    stamp: Stamp = ()
    """Times, size and inode; empty where they could stay the same after another write."""
    content: bytes = b""
    """The hash of a file's copy or a link's target; empty if a file could not be copied."""


class Manifest(Value):
    files: Mapping[str, SavedEntry] = {}
    repositories: tuple[str, ...] = ()
    """The `.git` of each nested repository."""
    links: tuple[str, ...] = ()
    """Links that lead to Handrail's own files."""
    unsaved: tuple[str, ...] = ()
    """Folders with more in them than is saved."""


class _Packed(Value):
    files: Mapping[bytes, SavedEntry]  # a name need not be UTF-8
    repositories: tuple[bytes, ...]
    links: tuple[bytes, ...]
    unsaved: tuple[bytes, ...]


class ChangeReport(Value):
    """Protected files that changed while commands ran, by what became of them."""

    restored: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """Reported only: nothing restores them."""
    failed: tuple[str, ...] = ()
    """They could not be restored."""
    quarantine: str = ""
    """Where what was in their place is now."""

    def __bool__(self) -> bool:
        return bool(self.restored or self.left or self.failed)

    def __add__(self, other: "ChangeReport") -> "ChangeReport":
        return ChangeReport(
            tuple(dict.fromkeys((*self.restored, *other.restored))),
            tuple(dict.fromkeys((*self.left, *other.left))),
            tuple(dict.fromkeys((*self.failed, *other.failed))),
            other.quarantine or self.quarantine,
        )


class RunningCommand(NamedTuple):
    marker: Path
    restores: bool
    alive: bool
    beat: float  # when its process was last known to be alive


class ProtectedCopies:
    """The copies of one workspace; `state` is the folder of its log."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.folder = state / FOLDER
        self._running = self.folder / "running"
        self._blobs = self.folder / "blobs"
        self._manifest = self.folder / "manifest"
        self._reports = self.folder / "reports"

    @property
    def in_use(self) -> bool:
        """Whether a command runs, or a killed Handrail has left one."""
        try:
            return bool(os.listdir(self._running))
        except FileNotFoundError:
            return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Raises StorageBusy if another process has it for long."""
        for folder in (self.folder, self._running, self._blobs):
            make_private(folder)
        with FileLock(self.folder / "lock") as lock:
            if not lock.wait(LOCK_SECONDS, poll=0.002):
                raise StorageBusy("Another Handrail is restoring files of this workspace. Try again.")
            yield

    # The following need the lock.

    def manifest(self) -> Manifest:
        try:
            packed = msgpack.decode(self._manifest.read_bytes(), type=_Packed)
        except (FileNotFoundError, DecodeError):
            return Manifest()
        names = (
            tuple(map(os.fsdecode, each)) for each in (packed.repositories, packed.links, packed.unsaved)
        )
        return Manifest({os.fsdecode(path): entry for path, entry in packed.files.items()}, *names)

    def store(self, manifest: Manifest) -> None:
        names = (
            tuple(map(os.fsencode, each))
            for each in (manifest.repositories, manifest.links, manifest.unsaved)
        )
        packed = _Packed({os.fsencode(path): entry for path, entry in manifest.files.items()}, *names)
        new = self._manifest.with_suffix(".new")
        new.write_bytes(msgpack.encode(packed))
        os.replace(new, self._manifest)

    def tidy(self, manifest: Manifest) -> None:
        """Remove the copies that a manifest does not need."""
        needed = {entry.content.decode() for entry in manifest.files.values() if entry.kind == "file"}
        for name in set(os.listdir(self._blobs)) - needed:
            with suppress(FileNotFoundError):
                os.unlink(self._blobs / name)

    def keep(self, data: bytes) -> bytes:
        """Store a content; returns its hash. It is not synced: a killed process loses nothing by that."""
        digest = hashlib.sha256(data).hexdigest()
        if not (self._blobs / digest).exists():
            new = self._blobs / f".{digest}"
            new.write_bytes(data)
            os.replace(new, self._blobs / digest)
        return digest.encode()

    def content(self, entry: SavedEntry) -> bytes | None:
        """The copy of a file; None where there is none, or it is damaged."""
        if entry.kind != "file" or not entry.content:
            return None
        try:
            data = (self._blobs / entry.content.decode()).read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest().encode() == entry.content else None

    def running(self) -> list[RunningCommand]:
        found = []
        for name in os.listdir(self._running):
            marker = self._running / name
            with suppress(FileNotFoundError):
                beat = marker.stat().st_mtime
                found.append(RunningCommand(marker, name.startswith("restore"), is_locked(marker), beat))
        return found

    def mark(self, *, restores: bool) -> tuple[Path, FileLock]:
        """Note that a command runs, for as long as the lock is held."""
        marker = self._running / new_id("restore" if restores else "report")
        lock = FileLock(marker)
        lock.try_lock()
        return marker, lock

    def unmark(self, marker: Path) -> None:
        marker.unlink(missing_ok=True)

    def add_report(self, report: ChangeReport) -> None:
        if report:
            with self._reports.open("ab") as file:
                file.write(to_json(report).encode() + b"\n")

    def reports_end(self) -> int:
        """Where the next report begins; reports that no running command needs are removed."""
        if not os.listdir(self._running):
            self._reports.unlink(missing_ok=True)
        return self._reports.stat().st_size if self._reports.exists() else 0

    def reports_since(self, position: int) -> ChangeReport:
        from msgspec import json

        found = ChangeReport()
        with suppress(FileNotFoundError), self._reports.open("rb") as file:
            file.seek(position)
            for line in file:
                found += json.decode(line, type=ChangeReport)
        return found

    def new_quarantine(self) -> Path:
        """An empty folder for what is in the place of restored files."""
        made = self.state / QUARANTINE / time.strftime(f"%Y%m%d-%H%M%S-{new_id('q')[-6:]}")
        return make_private(made)


@contextmanager
def own_write(state: Path, files: Mapping[str, bytes]) -> Iterator[None]:
    """Handrail itself writes these protected files in the block: that is not undone as a command's work."""
    copies = ProtectedCopies(state)
    with copies.locked():
        manifest = copies.manifest() if copies.in_use else None
        if manifest:
            known = dict(manifest.files)
            for path, data in files.items():
                for parent in PurePosixPath(path).parents[:-1]:
                    known.setdefault(str(parent), SavedEntry("folder"))
                before = known.get(path, SavedEntry("file"))
                mode, owner = (before.mode, before.owner) if before.kind == "file" else (ANY_MODE, (-1, -1))
                known[path] = SavedEntry("file", mode, owner, len(data), (), copies.keep(data))
            copies.store(replace(manifest, files=known))
        try:
            yield
        except BaseException:
            if manifest:
                copies.store(manifest)
            raise
