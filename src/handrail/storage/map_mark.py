"""Who may build the map, and what a builder that died was reading: files beside the cache of the map."""

import fcntl
import os
from pathlib import Path
from typing import NamedTuple

DIGEST = 16


class Suspect(NamedTuple):
    digest: bytes = b""
    deaths: int = 0


class Mark:
    """The content that is being read. The system keeps it, whatever becomes of the process."""

    def __init__(self, cache: Path) -> None:
        """`suspect` is what the last one was reading when it died, and how many have died of it."""
        name = cache.with_name(f"{cache.name}.reading")
        self._descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        data = os.pread(self._descriptor, DIGEST + 1, 0)
        self.suspect = Suspect(data[:DIGEST], data[DIGEST]) if len(data) > DIGEST else Suspect()

    def set(self, digest: bytes) -> None:
        deaths = self.suspect.deaths + 1 if digest == self.suspect.digest else 1
        os.pwrite(self._descriptor, digest + bytes([min(deaths, 255)]), 0)

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)


def lock_cache(cache: Path) -> int | None:
    """The right to write the cache, while a process has the descriptor; None while another has it."""
    name = cache.with_name(f"{cache.name}.lock")
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
