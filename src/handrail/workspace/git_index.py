"""Git's own index, read without git: which files are as a stored object has them.

Only what needs no guessing counts: an entry whose times, size and inode are those of the file, and that is
older than the index itself. Split and sparse indexes give what stands in them and nothing for the rest.
"""

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handrail.workspace.index import FileStat

FIELDS = struct.Struct(">10I")
"""ctime, its nanoseconds, mtime, its nanoseconds, device, inode, mode, user, group, size."""
LARGEST = 128_000_000
SECOND = 1_000_000_000
HALF = 0xFFFFFFFF
EXTENDED, STAGE, LENGTH = 0x4000, 0x3000, 0x0FFF
REGULAR = 0o100000


class Entry(NamedTuple):
    """What git knows of a file."""

    ctime_ns: int
    mtime_ns: int
    inode: int
    size: int
    object_id: str

    def is_of(self, found: FileStat) -> bool:
        """Whether the file has not been touched since git looked at it."""
        return (
            found.mtime_ns == self.mtime_ns
            and found.ctime_ns == self.ctime_ns
            and found.size & HALF == self.size
            and found.inode & HALF == self.inode
        )


class Damaged(ValueError):
    """This is no index that can be read."""


def index_file(root: Path) -> tuple[Path, str] | None:
    """The index of the repository that a folder is in, and the folder's path there; None without one."""
    for top in (root, *root.parents):
        git = top / ".git"
        with suppress(OSError, UnicodeDecodeError):
            if git.is_file():
                said = git.read_text(encoding="utf-8")
                if not said.startswith("gitdir: "):
                    return None
                git = top / said.removeprefix("gitdir: ").rstrip("\n")
            if git.is_dir():
                prefix = "" if top == root else f"{root.relative_to(top).as_posix()}/"
                return git / "index", prefix
    return None


def read_index(data: bytes, written_ns: int, prefix: str = "") -> dict[str, Entry]:
    """Regular files below `prefix`, by their paths from there; raises Damaged."""
    if len(data) < 32 or data[:4] != b"DIRC":
        raise Damaged("no index")
    version, count = struct.unpack_from(">2I", data, 4)
    if version not in (2, 3, 4):
        raise Damaged(f"version {version}")
    try:
        found = _entries(data, version, count, _id_length(data))
        start = os.fsencode(prefix)
        return {
            os.fsdecode(name[len(start) :]): entry
            for name, entry in found
            # What was written in the instant of the index, git itself could not tell from what came after.
            if entry.mtime_ns < written_ns and name.startswith(start)
        }
    except (struct.error, IndexError, ValueError) as error:
        raise Damaged(str(error)) from error


def _id_length(data: bytes) -> int:
    """The bytes of an object's id, told by the sum at the end; without one they are those of SHA-1."""
    if data.endswith(bytes(20)):
        return 20
    for name, length in (("sha1", 20), ("sha256", 32)):
        if hashlib.new(name, data[:-length], usedforsecurity=False).digest() == data[-length:]:
            return length
    raise Damaged("its sum is wrong")


def _entries(data: bytes, version: int, count: int, id_length: int) -> Iterator[tuple[bytes, Entry]]:
    """Regular files that are not in the middle of a merge."""
    at, name = 12, b""
    head = FIELDS.size + id_length + 2
    for _ in range(count):
        changed, changed_ns, made, made_ns, _, inode, mode, _, _, size = FIELDS.unpack_from(data, at)
        object_id = data[at + FIELDS.size : at + FIELDS.size + id_length]
        flags = data[at + head - 2] << 8 | data[at + head - 1]
        start = at + head + (2 if flags & EXTENDED else 0)
        if version == 4:
            dropped, start = _varint(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - dropped] + data[start:end]
            at = end + 1
        else:
            end = data.index(b"\0", start + (flags & LENGTH if flags & LENGTH < LENGTH else 0))
            name = data[start:end]
            at += (end - at + 8) & ~7
        if mode & 0o170000 == REGULAR and not flags & STAGE:
            times = changed * SECOND + changed_ns, made * SECOND + made_ns
            yield name, Entry(*times, inode, size, object_id.hex())


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Git's number of a varying length, and where it ends."""
    byte = data[at]
    value = byte & 127
    while byte & 128:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | byte & 127
    return value, at + 1
