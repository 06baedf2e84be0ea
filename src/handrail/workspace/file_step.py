"""A file's state on disk, and the step that takes it from one content to another."""

import hashlib
import os
import stat
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from handrail.config.open_file import FileTooLarge, NotAFile, open_file
from handrail.protocol.values import Value

NOT_REGULAR = "other"
"""In place of a hash: a folder, or not readable."""
MAX_BYTES = 64_000_000
UNREAD = "unread "
"""Begins what stands in place of the hash of a larger file or a socket: what identifies it."""
LINK_MODE = stat.S_IFLNK
"""In place of the permissions of a symbolic link, which has none."""
LINK_MARK = b"\0link\0"
"""Begins the content of a link, before its target, so that no text file has the same hash."""
PIPE_CONTENT = b"\0pipe\0"
"""Stands for the content of a named pipe, whose mode has the type bits of one."""
MAX_NAME_BYTES = 200


class FileState(NamedTuple):
    """A file or link as it is now; the hash is empty where there is none."""

    sha256: str = ""
    mode: int | None = None
    links: int = 0


def is_special(mode: int | None) -> bool:
    """Whether the mode is a link's or a pipe's; that of a file has no type bits."""
    return mode is not None and stat.S_IFMT(mode) != 0


class FileStep(Value):
    """A change of one path from an old content to a new one; a hash is empty where there is no file."""

    path: str
    old: str
    new: str
    old_mode: int | None
    new_mode: int | None
    mark: str
    """In the names of the temporary files."""
    like: str = ""
    """The file whose owner and attributes the new one gets."""
    editor: bool = False
    """An editor writes it, so that there are no temporary files."""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def temporary(self) -> str:
        return f".{self.mark}.handrail-tmp"

    @property
    def linked(self) -> str:
        """A second name of the replaced file, where names cannot be exchanged atomically."""
        return f".{self.mark}.handrail-old"

    @property
    def restored(self) -> str:
        """The old content, written again from the log, or a copy of what somebody else wrote."""
        return f".{self.mark}.handrail-back"

    @property
    def temporary_path(self) -> str:
        return self.beside(self.temporary)

    def copy_name(self, number: int) -> str:
        """The name of a copy of what somebody else wrote; its end distinguishes change sets and copies."""
        stem = self.name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
        copy = f"{stem}.conflict-{self.mark.partition('-')[0][-6:]}"
        return copy if number == 1 else f"{copy}-{number}"

    def beside(self, name: str) -> str:
        return str(PurePosixPath(self.path).with_name(name))

    def is_base(self, found: FileState) -> bool:
        """Whether the step can start from this, permissions included."""
        return found.sha256 == self.old and self.old_mode in (None, found.mode)

    def is_known(self, found: FileState) -> bool:
        return found.sha256 in (self.old, self.new)

    def state(self, found: FileState) -> Literal["old", "new", "third"]:
        """How far the step has come; `third` is somebody else's content."""
        if self.old == self.new:
            if found.sha256 != self.new:
                return "third"
            return "new" if found.mode == self.new_mode else "old"
        if found.sha256 == self.new:
            return "new"
        return "old" if found.sha256 == self.old else "third"


class FileContent(NamedTuple):
    """A file with its bytes; None where there is none, or it cannot be read."""

    found: FileState = FileState()
    data: bytes | None = None


def read_entry(name: str, folder: int) -> FileContent:
    """An entry of an open folder with its bytes."""
    parts: list[bytes] = []
    found = entry_state(name, folder, parts)
    known = found.sha256 not in ("", NOT_REGULAR) and not found.sha256.startswith(UNREAD)
    return FileContent(found, b"".join(parts) if known else None)


def entry_state(name: str, folder: int, parts: list[bytes] | None = None) -> FileState:
    """An entry of an open folder; its bytes, or the target of a link, are added to `parts`."""
    try:
        with open_file(name, folder=folder, follow=False) as file:
            found, digest = file.found, hashlib.sha256()
            mode, links = found.st_mode & 0o7777, found.st_nlink
            try:
                for chunk in file.chunks(MAX_BYTES):
                    digest.update(chunk)
                    if parts is not None:
                        parts.append(chunk)
            except FileTooLarge:
                return FileState(f"{UNREAD}{found.st_size} {found.st_mtime_ns} {found.st_ino}", mode, links)
            return FileState(digest.hexdigest(), mode, links)
    except FileNotFoundError:
        return FileState()
    except NotAFile as problem:
        if stat.S_ISLNK(problem.mode):
            return _link_state(name, folder, parts)
        return _special_state(name, folder, parts)
    except OSError:
        return FileState(NOT_REGULAR)


def _special_state(name: str, folder: int, parts: list[bytes] | None) -> FileState:
    """A folder, a pipe, a socket or a device."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return FileState(NOT_REGULAR)
    if stat.S_ISDIR(found.st_mode):
        return FileState(NOT_REGULAR, stat.S_IMODE(found.st_mode), found.st_nlink)
    if stat.S_ISFIFO(found.st_mode):
        if parts is not None:
            parts.append(PIPE_CONTENT)
        return FileState(hashlib.sha256(PIPE_CONTENT).hexdigest(), found.st_mode, 1)
    kind = stat.S_IFMT(found.st_mode)
    return FileState(f"{UNREAD}{kind:o} {found.st_ino}", stat.S_IMODE(found.st_mode), 1)


def _link_state(name: str, folder: int, parts: list[bytes] | None) -> FileState:
    try:
        data = LINK_MARK + os.fsencode(os.readlink(name, dir_fd=folder))
    except OSError:
        return FileState(NOT_REGULAR)
    if parts is not None:
        parts.append(data)
    return FileState(hashlib.sha256(data).hexdigest(), LINK_MODE, 1)
