"""Read git's index without git: which files equal a stored object.

An entry counts only if its times, size and inode are those of the file, and it is older than the index. Split
and sparse indexes give only the entries they have.
"""

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handrail.workspace.git_folder import UnusableRepository, find_git_folder
from handrail.workspace.stat_index import FileStat

FIELDS = struct.Struct(">10I")  # ctime, its ns, mtime, its ns, device, inode, mode, user, group, size
MAX_INDEX_BYTES = 128_000_000
MAX_NAME_BYTES = 4_096
SECOND = 1_000_000_000
MASK_32 = 0xFFFFFFFF
EXTENDED, STAGE, LENGTH = 0x4000, 0x3000, 0x0FFF
REGULAR = 0o100000
SPLIT = b"link\0\0\0"
"""The name of the extension that a split index has, and the start of its length."""


class IndexEntry(NamedTuple):
    ctime_ns: int
    mtime_ns: int
    inode: int
    size: int
    object_id: str

    def is_of(self, found: FileStat) -> bool:
        """Whether the file has not changed since git read it."""
        now = (found.ctime_ns, found.mtime_ns, found.inode & MASK_32, found.size & MASK_32)
        return now == (self.ctime_ns, self.mtime_ns, self.inode, self.size)


class DamagedIndex(ValueError):
    """The index cannot be read."""


def find_index(root: Path) -> tuple[Path, str] | None:
    """The index of the repository that a folder is in, and the folder's path in it; None without one."""
    with suppress(OSError, UnusableRepository):
        if found := find_git_folder(root):
            return found.folder / "index", found.prefix
    return None


def read_index(data: bytes, written_ns: int, prefix: str = "") -> dict[str, IndexEntry]:
    """Regular files below `prefix`, by their paths from there; raises DamagedIndex."""
    start = os.fsencode(prefix)
    return {
        os.fsdecode(name[len(start) :]): entry
        for name, mode, stage, entry in _parse(data)
        # Git itself cannot tell whether a file written at the time of the index changed later.
        if mode & 0o170000 == REGULAR and not stage and entry.mtime_ns < written_ns and name.startswith(start)
    }


def tracked_paths(data: bytes, prefix: str = "") -> set[str]:
    """All paths below `prefix` that git tracks, also while they are merged; raises DamagedIndex."""
    start = os.fsencode(prefix)
    found = {os.fsdecode(name[len(start) :]) for name, *_ in _parse(data) if name.startswith(start)}
    if SPLIT in data:
        raise DamagedIndex("most of a split index is in another file")
    return found


def _parse(data: bytes) -> list[tuple[bytes, int, int, IndexEntry]]:
    if len(data) < 32 or data[:4] != b"DIRC":
        raise DamagedIndex("no index")
    version, count = struct.unpack_from(">2I", data, 4)
    if version not in (2, 3, 4):
        raise DamagedIndex(f"version {version}")
    try:
        return list(_entries(data, version, count, _id_length(data)))
    except (struct.error, IndexError, ValueError) as error:
        raise DamagedIndex(str(error)) from error


def _id_length(data: bytes) -> int:
    """The bytes of an object's id, by the checksum at the end; without one, those of SHA-1."""
    if data.endswith(bytes(20)):
        return 20
    for name, length in (("sha1", 20), ("sha256", 32)):
        if hashlib.new(name, data[:-length], usedforsecurity=False).digest() == data[-length:]:
            return length
    raise DamagedIndex("wrong checksum")


def _entries(
    data: bytes, version: int, count: int, id_length: int
) -> Iterator[tuple[bytes, int, int, IndexEntry]]:
    """Each entry with its name, its mode, and its stage, which is not 0 while the file is merged."""
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
        if (
            len(name) > MAX_NAME_BYTES
        ):  # version 4 repeats the name before: a small index could fill the memory
            raise DamagedIndex("a name is too long")
        times = changed * SECOND + changed_ns, made * SECOND + made_ns
        yield name, mode, flags & STAGE, IndexEntry(*times, inode, size, object_id.hex())


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in git's variable-length encoding, and where it ends."""
    byte = data[at]
    value = byte & 127
    while byte & 128:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | byte & 127
    return value, at + 1
