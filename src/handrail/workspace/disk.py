"""The system calls that change files, in one class so that tests can make any of them fail."""

import errno
import fcntl
import os
import sys
from collections.abc import Callable
from functools import cache

CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
APPEND_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


class NotSupported(Exception):
    """The operating system or the file system cannot do this in one step."""


class Disk:
    """Names are entries of an open folder; links are not followed."""

    def create(self, folder: int, name: str, mode: int) -> int:
        return os.open(name, CREATE_FLAGS, mode, dir_fd=folder)

    def append(self, folder: int, name: str, mode: int) -> int:
        """A descriptor to read a file and to write at its end; the file is made if it is missing."""
        return os.open(name, APPEND_FLAGS, mode, dir_fd=folder)

    def write(self, descriptor: int, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]

    def cut(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Return when a file's content, or a folder's entries, would survive a power cut."""
        # On macOS an fsync only reaches the drive's cache.
        full = getattr(fcntl, "F_FULLFSYNC", None)
        if full is None:
            os.fsync(descriptor)
        else:
            fcntl.fcntl(descriptor, full)

    def exchange(self, folder: int, one: str, other: str) -> None:
        """Swap two names atomically; raises NotSupported."""
        _rename(folder, one, other, swap=True)

    def move(self, folder: int, name: str, to: str) -> None:
        """Rename, never over an existing file; raises FileExistsError, NotSupported."""
        _rename(folder, name, to, swap=False)

    def replace(self, folder: int, name: str, to: str) -> None:
        """Rename, over an existing file too."""
        os.replace(name, to, src_dir_fd=folder, dst_dir_fd=folder)

    def link(self, folder: int, name: str, to: str) -> None:
        """Add a name, never over an existing file; raises FileExistsError."""
        os.link(name, to, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)

    def symlink(self, folder: int, name: str, target: bytes) -> None:
        os.symlink(target, os.fsencode(name), dir_fd=folder)

    def mkfifo(self, folder: int, name: str, mode: int) -> None:
        os.mkfifo(name, 0o600, dir_fd=folder)
        self.chmod(folder, name, mode)

    def unlink(self, folder: int, name: str) -> None:
        os.unlink(name, dir_fd=folder)

    def mkdir(self, folder: int, name: str) -> None:
        os.mkdir(name, dir_fd=folder)

    def rmdir(self, folder: int, name: str) -> None:
        os.rmdir(name, dir_fd=folder)

    def chmod(self, folder: int, name: str, mode: int) -> None:
        """Set the permissions of a file or folder; a link is an error."""
        if os.chmod in os.supports_follow_symlinks:
            os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
            return
        # Linux has no such call; a descriptor of this kind also opens what cannot be read.
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", mode)
        finally:
            os.close(descriptor)


DISK = Disk()


def _rename(folder: int, name: str, to: str, *, swap: bool) -> None:
    call = _rename_call()
    if call is None:
        raise NotSupported
    # RENAME_SWAP and RENAME_EXCL on macOS, RENAME_EXCHANGE and RENAME_NOREPLACE on Linux.
    flag = 2 if swap else 4 if sys.platform == "darwin" else 1
    code = call(folder, os.fsencode(name), folder, os.fsencode(to), flag)
    if code in NOT_SUPPORTED:
        raise NotSupported
    if code:
        raise OSError(code, os.strerror(code), to)


@cache
def _rename_call() -> Callable[..., int] | None:
    """Rename with flags, which Python lacks; it returns an error number. None if the system lacks it."""
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
