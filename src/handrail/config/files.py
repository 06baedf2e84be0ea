"""Handrail's own files: the one way to write one atomically, and the one way to lock one.

Files of the workspace are written by `workspace/writer.py` alone, which has stricter rules.
"""

import fcntl
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

POLL_SECONDS = 0.02


def write_atomically(path: Path, data: bytes | Iterable[bytes], *, overwrite: bool = True) -> None:
    """Write a file that only the user can read; readers and crashes see the old content or the new.

    Raises FileExistsError if the file exists and must not be overwritten.
    """
    import tempfile

    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(descriptor)
        if overwrite:
            os.replace(name, path)
        else:
            os.link(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileLock:
    """A lock on a folder, or on a file, which is created if needed. It ends with the process at the latest.

    Locking again switches between shared and exclusive.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
        self.descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)

    def try_lock(self, *, shared: bool = False) -> bool:
        """Whether the lock was taken; not while another process has it, unless both are shared."""
        try:
            fcntl.flock(self.descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait(self, seconds: float, *, shared: bool = False, poll: float = POLL_SECONDS) -> bool:
        """Like `try_lock`, repeated for up to so many seconds; blocks the thread."""
        deadline = time.monotonic() + seconds
        while not self.try_lock(shared=shared):
            if time.monotonic() > deadline:
                return False
            time.sleep(poll)
        return True

    def release(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def try_lock(path: Path, *, shared: bool = False) -> FileLock | None:
    """The lock on a file or folder; None while another process has it."""
    lock = FileLock(path)
    if lock.try_lock(shared=shared):
        return lock
    lock.release()
    return None


def is_locked(path: Path, *, alone: bool = False) -> bool:
    """Whether a process has the file locked (`alone`: exclusively); True if that cannot be found out."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if alone else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
