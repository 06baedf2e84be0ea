"""A file of copies, with a journal beside it, in a folder that is one process's for as long as it lives."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from handrail.config.files import FileLock
from handrail.protocol.ids import new_id

COPIES, JOURNAL = "copies", "journal"
MAX_DISK_SHARE = 4  # of the free space, one part in so many


class CopyPack:
    """Contents, one behind the other; they are found by their place."""

    def __init__(self, parent: Path) -> None:
        self._folder = parent / new_id("w")
        self._folder.mkdir(parents=True, mode=0o700)
        self._lock = FileLock(self._folder)
        self._lock.try_lock()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self.descriptor = os.open(self._folder / COPIES, flags, 0o600)
        self.size = 0

    @property
    def room(self) -> int:
        """Bytes that it may have, so that the disk does not become full."""
        found = os.fstatvfs(self.descriptor)
        return found.f_bavail * found.f_frsize // MAX_DISK_SHARE + self.size

    def add(self, data: bytes) -> int | None:
        """Where the content is; None if the disk is full."""
        try:
            written = os.pwrite(self.descriptor, data, self.size)
        except OSError:
            return None
        if written != len(data):
            return None
        self.size += written
        return self.size - written

    def clear(self) -> None:
        os.ftruncate(self.descriptor, 0)
        self.size = 0

    def write_journal(self, data: bytes) -> None:
        """Remember on disk that something begins, for the next process if this one is killed."""
        with suppress(OSError):  # without it, only what a killed process did would not be recorded
            (self._folder / JOURNAL).write_bytes(data)

    def remove_journal(self) -> None:
        with suppress(OSError):
            (self._folder / JOURNAL).unlink(missing_ok=True)

    def close(self) -> None:
        os.close(self.descriptor)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.release()


class AbandonedPack:
    """The copies and the journal of a process that was killed."""

    def __init__(self, folder: Path, descriptor: int, journal: bytes) -> None:
        self.folder = folder
        self.descriptor = descriptor
        self.journal = journal
        self.keep = False
        """Whether it stays for another process; else it is removed."""


@contextmanager
def abandoned_packs(parent: Path) -> Iterator[list[AbandonedPack]]:
    """The packs of processes that have ended; those that are not kept are removed after the block."""
    found: list[AbandonedPack] = []
    with ExitStack() as held:
        for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
            lock = held.enter_context(FileLock(folder))
            if not lock.try_lock():
                continue  # its process runs
            with suppress(OSError):
                journal = (folder / JOURNAL).read_bytes() if (folder / JOURNAL).exists() else b""
                descriptor = os.open(folder / COPIES, os.O_RDONLY | os.O_CLOEXEC)
                held.callback(os.close, descriptor)
                found.append(AbandonedPack(folder, descriptor, journal))
        yield found
        for pack in found:
            if not pack.keep:
                shutil.rmtree(pack.folder, ignore_errors=True)
