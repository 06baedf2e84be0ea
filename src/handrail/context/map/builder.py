"""The program that builds the map in the background: one at a time, politely, for a while.

`python -m handrail.context.map.builder ROOT CACHE`. Grammars are C code, and a repository may hold what they
were never tried with: a content of which this process died twice, by crash, memory or time, is left out.
"""

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from handrail.context.map.build import SECONDS, build
from handrail.context.map.symbols import Symbols
from handrail.storage.map_cache import CacheBroken, MapCache
from handrail.storage.map_mark import Mark, lock_cache

DEADLY = 2
"""Deaths while one content was read, after which it is not read again: one may have been an accident."""
FILE_SECONDS = 2.0
"""Of the processor, for one file."""
MEMORY = 1_000_000_000


def main() -> None:
    root, file = Path(sys.argv[1]), Path(sys.argv[2])
    _keep_within()
    with suppress(CacheBroken, OSError):  # no room, or no folder any more: the next run tries again
        lock = lock_cache(file)
        if lock is not None:
            _build(root, file, Mark(file))


def _keep_within() -> None:
    """Take no more than a share of memory and time."""
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

    with closing(MapCache(file)) as cache:
        if mark.suspect.deaths >= DEADLY:
            cache.keep((), [(mark.suspect.digest, Symbols().pack())])
        build(root, cache, guard=guard)


if __name__ == "__main__":
    main()
