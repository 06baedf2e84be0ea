"""The system calls that change the user's files: a thin seam, so that tests can pull the plug at each."""

import errno
import fcntl
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Protocol

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
AT_END = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


class NotOffered(Exception):
    """The file system, or the system, cannot do this in one step."""


class Disk(Protocol):
    """Names are of entries of an opened folder; none is followed if it is a link."""

    def create(self, folder: int, name: str, mode: int) -> int:
        """A descriptor to write a new file with."""

    def append(self, folder: int, name: str, mode: int) -> int:
        """A descriptor to read a file with, made where there is none, and to write at its end."""

    def write(self, descriptor: int, data: bytes) -> None:
        """All of the data."""

    def cut(self, descriptor: int, size: int) -> None:
        """Take away what stands behind so many bytes."""

    def sync(self, descriptor: int) -> None:
        """Return when a file's content, or a folder's entries, would survive a power cut."""

    def exchange(self, folder: int, one: str, other: str) -> None:
        """Two names swap what they stand for, at once; raises NotOffered."""

    def move(self, folder: int, name: str, to: str) -> None:
        """Another name, unless something has it; raises FileExistsError, NotOffered."""

    def replace(self, folder: int, name: str, to: str) -> None:
        """Another name, whatever has it."""

    def link(self, folder: int, name: str, to: str) -> None:
        """One more name, unless something has it; raises FileExistsError."""

    def unlink(self, folder: int, name: str) -> None: ...

    def mkdir(self, folder: int, name: str) -> None: ...

    def rmdir(self, folder: int, name: str) -> None: ...


class RealDisk:
    def create(self, folder: int, name: str, mode: int) -> int:
        return os.open(name, NEW, mode, dir_fd=folder)

    def append(self, folder: int, name: str, mode: int) -> int:
        return os.open(name, AT_END, mode, dir_fd=folder)

    def write(self, descriptor: int, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]

    def cut(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        # On macOS an fsync only reaches the drive's cache.
        full = getattr(fcntl, "F_FULLFSYNC", None)
        if full is None:
            os.fsync(descriptor)
        else:
            fcntl.fcntl(descriptor, full)

    def exchange(self, folder: int, one: str, other: str) -> None:
        _rename(folder, one, other, swap=True)

    def move(self, folder: int, name: str, to: str) -> None:
        _rename(folder, name, to, swap=False)

    def replace(self, folder: int, name: str, to: str) -> None:
        os.replace(name, to, src_dir_fd=folder, dst_dir_fd=folder)

    def link(self, folder: int, name: str, to: str) -> None:
        os.link(name, to, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)

    def unlink(self, folder: int, name: str) -> None:
        os.unlink(name, dir_fd=folder)

    def mkdir(self, folder: int, name: str) -> None:
        os.mkdir(name, dir_fd=folder)

    def rmdir(self, folder: int, name: str) -> None:
        os.rmdir(name, dir_fd=folder)


DISK: Disk = RealDisk()


def _rename(folder: int, name: str, to: str, *, swap: bool) -> None:
    call = _call()
    if call is None:
        raise NotOffered
    code = call(folder, os.fsencode(name), folder, os.fsencode(to), _flag(swap=swap))
    if code == 0:
        return
    if code in NOT_OFFERED:
        raise NotOffered
    raise OSError(code, os.strerror(code), to)


def _flag(*, swap: bool) -> int:
    if sys.platform == "darwin":
        return 2 if swap else 4  # RENAME_SWAP, RENAME_EXCL
    return 2 if swap else 1  # RENAME_EXCHANGE, RENAME_NOREPLACE


@cache
def _call() -> Callable[..., int] | None:
    """Renaming with flags, which Python has no function for, giving the error's number; None without it."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
    if function is None:
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int

    def call(*arguments: int | bytes) -> int:
        return 0 if function(*arguments) == 0 else ctypes.get_errno()

    return call
