"""Locks of the operating system, which end with the process that has them, however it ends."""

import fcntl
import os
from pathlib import Path


class Lock:
    """A lock that is held until it is released or the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def try_lock(path: Path, *, shared: bool = False) -> Lock | None:
    """The lock on a file, which is made if need be; None while others have it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return Lock(descriptor)


def is_locked(path: Path) -> bool:
    """Whether some process has the file locked for itself alone."""
    if not path.exists():
        return False
    lock = try_lock(path, shared=True)
    if lock is None:
        return True
    lock.release()
    return False
