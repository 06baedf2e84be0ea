"""What is found at a name, and the step that leads from one content to another."""

import hashlib
import os
import stat
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from handrail.protocol.record import Record

OTHER = "other"
"""Stands for the hash of what is no regular file, cannot be read, or is too large to be ours."""
LARGEST = 64_000_000
CHUNK = 1 << 18
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


class Found(NamedTuple):
    """A file as it is now; without a hash there is none."""

    sha256: str = ""
    mode: int | None = None
    links: int = 0


class Step(Record):
    """One path's way from an old content to a new one; a hash is empty where there is no file."""

    path: str
    old: str
    new: str
    old_mode: int | None
    new_mode: int | None
    mark: str
    """Of the names that lie beside the file while the step is taken."""
    like: str = ""
    """The file whose owner and attributes the new one gets."""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def temporary(self) -> str:
        return f".{self.mark}.handrail-tmp"

    @property
    def linked(self) -> str:
        """A second name of the displaced file, where names cannot be exchanged at once."""
        return f".{self.mark}.handrail-old"

    @property
    def restored(self) -> str:
        """The old content, written anew from where it is kept."""
        return f".{self.mark}.handrail-back"

    @property
    def temporary_path(self) -> str:
        return self.beside(self.temporary)

    @property
    def tail(self) -> str:
        """A few characters that tell copies of different change sets apart."""
        return self.mark.partition("-")[0][-6:]

    def beside(self, name: str) -> str:
        return str(PurePosixPath(self.path).with_name(name))

    def is_base(self, found: Found) -> bool:
        """Whether this is what the step starts from, permissions included."""
        return found.sha256 == self.old and self.old_mode in (None, found.mode)

    def is_known(self, found: Found) -> bool:
        return found.sha256 in (self.old, self.new)

    def state(self, found: Found) -> Literal["old", "new", "third"]:
        """How far the step has come, by what is there."""
        if self.old == self.new:
            if found.sha256 != self.new:
                return "third"
            return "new" if found.mode == self.new_mode else "old"
        if found.sha256 == self.new:
            return "new"
        return "old" if found.sha256 == self.old else "third"


class Content(NamedTuple):
    """A file with its bytes; None where there is none, or none that can be read."""

    found: Found = Found()
    data: bytes | None = None


def read_at(name: str, folder: int) -> Content:
    """What an entry of an opened folder is, and its bytes."""
    parts: list[bytes] = []
    found = look_at(name, folder, parts)
    return Content(found, b"".join(parts) if found.sha256 not in ("", OTHER) else None)


def look_at(name: str, folder: int, parts: list[bytes] | None = None) -> Found:
    """What an entry of an opened folder is; its bytes are added to `parts`."""
    try:
        descriptor = os.open(name, READ, dir_fd=folder)
    except FileNotFoundError:
        return Found()
    except OSError:
        return Found(OTHER)  # a link, or closed to us
    try:
        found = os.fstat(descriptor)
        mode = found.st_mode & 0o7777
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return Found(OTHER, mode, found.st_nlink)
        digest = hashlib.sha256()
        while chunk := os.read(descriptor, CHUNK):
            digest.update(chunk)
            if parts is not None:
                parts.append(chunk)
        return Found(digest.hexdigest(), mode, found.st_nlink)
    finally:
        os.close(descriptor)
