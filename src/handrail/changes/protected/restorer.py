"""Put saved files back in their places; whatever is there is moved to a quarantine folder first.

A link is never followed on the way to a file, and a file is never written through another of its names.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from handrail.changes.protected.scan import Found, entry_of, open_regular
from handrail.protocol.errors import StorageProblem
from handrail.protocol.ids import new_id
from handrail.storage.locks import trace_lock
from handrail.storage.protected_copies import ANY_MODE, ChangeReport, Manifest, ProtectedCopies, SavedEntry
from handrail.workspace.disk import DISK, NotSupported
from handrail.workspace.paths import open_folder, printable
from handrail.workspace.sensitive_names import GIT

TRACE = ".orchestration/agent_trace.jsonl"
MAX_FILE_BYTES = 16_000_000
MAX_MOVED_BYTES = 1_000_000  # copied to the quarantine if it is on another file system
MAX_NAMED = 200
MAX_SEARCHED = 20_000  # folders in which a moved repository is looked for
ATTEMPTS = 3


class Change(NamedTuple):
    path: str
    saved: SavedEntry | None
    found: SavedEntry | None


class Restorer:
    """Puts saved files back; a link is never followed on the way to them."""

    def __init__(self, copies: ProtectedCopies, root: Path, until: float | None) -> None:
        self._copies, self._root, self._until = copies, root, until
        self._quarantine: Path | None = None
        self._moved: list[str] = []
        self.restored: list[str] = []
        self.left: list[str] = []
        self.failed: list[str] = []

    def entry(self, path: str, found: Found) -> SavedEntry | None:
        """What is at a path now; nothing, if a folder above it was just moved away."""
        moved = any(path.startswith(f"{each}/") for each in self._moved)
        return None if moved else found.entries.get(path)

    def restore(self, change: Change) -> bool:
        """Whether it was a command's work and has been undone, or at least that was tried."""
        path, saved, _ = change
        if self._until is not None and self._changed_at(path) > self._until:
            return False
        try:
            if saved is None:
                self._set_aside(path)
            else:
                self._put_back(path, saved)
            self.restored.append(path)
        except _NoCopy:
            return False
        except (OSError, StorageProblem):
            self.failed.append(path)
        return True

    def open_folders(self, manifest: Manifest, found: Found) -> bool:
        """Give folders their saved modes, so that what is in them can be seen; whether one had another."""
        changed = False
        for path, entry in found.entries.items():
            saved = manifest.files.get(path, entry)
            if entry.kind != "folder" or saved.kind != "folder" or saved.mode in (ANY_MODE, entry.mode):
                continue
            with suppress(OSError), open_folder(self._root / path, root=self._root) as folder:
                os.chmod(f"/proc/self/fd/{folder}", saved.mode)
                self.restored.append(path)
                changed = True
        return changed

    def return_repositories(self, manifest: Manifest) -> None:
        """Move a repository back that was moved elsewhere in the workspace."""
        for git in (GIT, *manifest.repositories):
            saved = manifest.files.get(git)
            if saved is None or saved.kind != "folder":
                continue
            with suppress(OSError):
                with suppress(FileNotFoundError):
                    if entry_of(os.lstat(self._root / git)).stamp == saved.stamp:
                        continue
                elsewhere = _find_folder(self._root, saved.stamp[1])
                if elsewhere is None or (self._root / git).parent.is_relative_to(elsewhere):
                    self.left.append(git)
                    continue
                with open_folder((self._root / git).parent, root=self._root) as folder:
                    temporary = _temporary_name()
                    os.rename(elsewhere, temporary, dst_dir_fd=folder)
                    with suppress(FileNotFoundError):
                        self._set_aside(git)
                    os.rename(temporary, PurePosixPath(git).name, src_dir_fd=folder, dst_dir_fd=folder)
                self._moved.clear()
                self.restored.append(git)

    def report(self, overfull: Iterable[str]) -> ChangeReport:
        restored, left, failed = (
            tuple(map(printable, each[:MAX_NAMED]))
            for each in (self.restored, [*overfull, *self.left], self.failed)
        )
        return ChangeReport(restored, left, failed, str(self._quarantine or ""))

    def _changed_at(self, path: str) -> float:
        """When a path, or for one that is gone its folder, last changed."""
        for place in (self._root / path, *(self._root / path).parents):
            with suppress(OSError):
                return os.lstat(place).st_ctime
        return time.time()

    def _put_back(self, path: str, saved: SavedEntry) -> None:
        with ExitStack() as held:
            data = self._copies.content(saved)
            if saved.kind == "other" or (saved.kind == "file" and data is None):
                raise _NoCopy
            if path == TRACE:
                held.enter_context(trace_lock(self._copies.state))
                data = (data or b"") + self._added_lines(path, saved.size)
            folder = held.enter_context(open_folder((self._root / path).parent, root=self._root))
            if saved.kind == "folder" and _is_folder(PurePosixPath(path).name, folder):
                return
            temporary = _temporary_name()
            make = {"file": self._make_file, "link": self._make_link, "folder": self._make_folder}[saved.kind]
            make(folder, temporary, saved, data or b"")
            try:
                self._replace(folder, temporary, path)
            except OSError:
                with suppress(OSError):
                    os.rmdir(temporary, dir_fd=folder) if saved.kind == "folder" else DISK.unlink(
                        folder, temporary
                    )
                raise

    def _replace(self, folder: int, temporary: str, path: str) -> None:
        """Set aside what is at the path, and put the restored one there."""
        name = PurePosixPath(path).name
        for _ in range(ATTEMPTS):
            with suppress(FileNotFoundError):
                self._set_aside(path)
            with suppress(FileExistsError):  # a command that still runs has made it again
                try:
                    DISK.move(folder, temporary, name)
                except NotSupported:
                    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                return
        raise FileExistsError(path)

    def _make_file(self, folder: int, name: str, saved: SavedEntry, data: bytes) -> None:
        descriptor = DISK.create(folder, name, 0o600)
        try:
            DISK.write(descriptor, data)
            with suppress(PermissionError):
                os.fchown(descriptor, *saved.owner)
            os.fchmod(descriptor, 0o644 if saved.mode == ANY_MODE else saved.mode)
            DISK.sync(descriptor)
        finally:
            os.close(descriptor)

    def _make_link(self, folder: int, name: str, saved: SavedEntry, _data: bytes) -> None:
        os.symlink(os.fsdecode(saved.content), name, dir_fd=folder)

    def _make_folder(self, folder: int, name: str, saved: SavedEntry, _data: bytes) -> None:
        DISK.mkdir(folder, name)
        with suppress(PermissionError):
            os.chown(name, *saved.owner, dir_fd=folder, follow_symlinks=False)
        if saved.mode != ANY_MODE:
            os.chmod(name, saved.mode, dir_fd=folder)

    def _added_lines(self, path: str, size: int) -> bytes:
        """Whole lines beyond the saved size: another session may have added them."""
        with suppress(OSError), open_regular(self._root, path) as descriptor:
            added = os.pread(descriptor, MAX_FILE_BYTES, size)
            before = os.pread(descriptor, 1, size - 1) if size else b"\n"
            return added[: added.rfind(b"\n") + 1] if before == b"\n" else b""
        return b""

    def _set_aside(self, path: str) -> None:
        """Move what is at the path to the quarantine; raises FileNotFoundError if nothing is."""
        name = PurePosixPath(path).name
        with open_folder((self._root / path).parent, root=self._root) as folder:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            quarantine = self._quarantine or self._copies.new_quarantine()
            self._quarantine = quarantine
            flat = path.replace("/", "%")[-200:]
            target = quarantine / flat
            while os.path.lexists(target):
                target = quarantine / f"{flat}~{new_id('q')[-6:]}"
            try:
                os.rename(name, target, src_dir_fd=folder)
            except OSError:
                self._move_across(path, name, folder, target, found.st_size)
            self._moved.append(path)

    def _move_across(self, path: str, name: str, folder: int, target: Path, size: int) -> None:
        """Move a file to another file system; what is large is moved to the top of the workspace."""
        if size <= MAX_MOVED_BYTES:
            with suppress(OSError), open_regular(self._root, path) as descriptor:
                data = read_up_to(descriptor, MAX_MOVED_BYTES + 1)
                if len(data) <= MAX_MOVED_BYTES:
                    target.write_bytes(data)
                    DISK.unlink(folder, name)
                    return
        os.rename(name, self._root / f"{name}.conflict-{target.parent.name[-6:]}", src_dir_fd=folder)


def _find_folder(root: Path, inode: int) -> Path | None:
    """The folder of this inode, in the first folders of the workspace."""
    waiting, left = deque([root]), MAX_SEARCHED
    while waiting and left:
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.inode() == inode:
                        return Path(entry.path)
                    waiting.append(Path(entry.path))
                    left = max(0, left - 1)
    return None


def _is_folder(name: str, parent: int) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    return False


def _temporary_name() -> str:
    return f".{new_id('p')}.handrail-tmp"


class _NoCopy(Exception):
    """The file was too large to be copied, or its copy is damaged."""


def read_up_to(descriptor: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (chunk := os.read(descriptor, min(most, 1 << 20))):
        parts.append(chunk)
        most -= len(chunk)
    return b"".join(parts)
