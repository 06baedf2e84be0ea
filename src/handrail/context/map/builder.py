"""The program that builds the map in the background: one at a time, out of everybody's way, for a while.

`python -m handrail.context.map.builder ROOT CACHE`. Grammars are C code, and a repository may hold what they
were never tried with: a content of which this process died twice, by crash, memory or time, is left out.
"""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from handrail.context.map.build import SECONDS, build
from handrail.storage.map_cache import CacheBroken, MapCache
from handrail.storage.map_mark import Mark, lock_cache

DEADLY = 2
"""Deaths while one content was read, after which it is not read again: one may have been an accident."""
FILE_SECONDS = 5.0
"""Of the processor, for one file."""
MEMORY = 1_000_000_000


def main() -> None:
    root, file = Path(sys.argv[1]), Path(sys.argv[2])
    _step_back()
    with suppress(CacheBroken, OSError):  # no room, or no folder any more: the next run tries again
        lock = lock_cache(file)
        if lock is not None:
            _build(root, file, Mark(file))


def _step_back() -> None:
    """Take only what nobody else wants of the processor, and not all of the memory."""
    os.nice(19)
    if hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    # Only a signal that nothing handles ends a library that hangs.
    signal.alarm(int(1.5 * SECONDS))


def _build(root: Path, file: Path, mark: Mark) -> None:
    @contextmanager
    def guard(digest: bytes) -> Iterator[None]:
        mark.set(digest)
        signal.setitimer(signal.ITIMER_PROF, FILE_SECONDS)
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        mark.clear()

    deadly = {mark.suspect.digest} if mark.suspect.deaths >= DEADLY else set()
    with closing(MapCache(file)) as cache:
        build(root, cache, unreadable=deadly, guard=guard)


if __name__ == "__main__":
    main()
