"""Open files for reading: the only way for every file that a repository could put in our way.

Only regular files are opened, and never more is read than the caller allows. A pipe, a device, a socket or a
file of any size in place of a file that Handrail looks for ends in an error, at once.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

CHUNK = 1 << 18
# Without O_NONBLOCK, opening a pipe would wait for somebody to write; without O_NOCTTY, a terminal that is
# opened could become ours.
FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotAFile(OSError):
    """There is something, but no regular file; it was not opened, or nothing was read from it."""

    def __init__(self, path: str | Path, mode: int) -> None:
        self.mode = mode
        self.kind = KINDS.get(stat.S_IFMT(mode), "something else")
        super().__init__(errno.EINVAL, f"it is {self.kind}, not a file", str(path))


class FileTooLarge(OSError):
    """The file has more bytes than the caller wants to read."""

    def __init__(self, path: str | Path, limit: int) -> None:
        super().__init__(errno.EFBIG, f"it has more than {limit:,} bytes", str(path))


class OpenFile(NamedTuple):
    """A regular file that is open, and its stat when it was opened."""

    path: str | Path
    descriptor: int
    found: os.stat_result

    def read(self, most: int) -> bytes:
        """The next bytes, up to so many; fewer only at the end of the file."""
        parts, left = [], most
        while left > 0 and (part := os.read(self.descriptor, min(left, CHUNK))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def chunks(self, limit: int) -> Iterator[bytes]:
        """The rest of the file, piece by piece; raises FileTooLarge, even if it grows meanwhile."""
        left = limit - self.found.st_size
        if left >= 0:
            left = limit
            while chunk := os.read(self.descriptor, min(CHUNK, left + 1)):
                left -= len(chunk)
                if left < 0:
                    break
                yield chunk
        if left < 0:
            raise FileTooLarge(self.path, limit)

    def tail(self, most: int) -> bytes:
        """The last bytes, up to so many."""
        os.lseek(self.descriptor, max(0, os.fstat(self.descriptor).st_size - most), os.SEEK_SET)
        return self.read(most)


@contextmanager
def open_file(path: str | Path, *, folder: int | None = None, follow: bool = True) -> Iterator[OpenFile]:
    """A regular file, from an open folder if one is given; raises NotAFile, or OSError as `os.open` does.

    `follow`: a link as the last name of the path is followed.
    """
    # Opening a device can have an effect, so the kind is looked at before; and after, because the name may
    # lead elsewhere by then.
    _require_file(path, os.stat(path, dir_fd=folder, follow_symlinks=follow))
    descriptor = os.open(path, FLAGS if follow else FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    try:
        found = os.fstat(descriptor)
        _require_file(path, found)
        yield OpenFile(path, descriptor, found)
    finally:
        os.close(descriptor)


def read_file(path: str | Path, limit: int, *, folder: int | None = None, follow: bool = True) -> bytes:
    """The content of a regular file; raises NotAFile, FileTooLarge or another OSError."""
    with open_file(path, folder=folder, follow=follow) as file:
        return b"".join(file.chunks(limit))


def _require_file(path: str | Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotAFile(path, found.st_mode)
