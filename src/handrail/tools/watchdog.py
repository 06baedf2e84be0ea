"""Looking now and then at what a program and all that it started take, where the kernel sets no limit.

Something quick can take more between two looks: this keeps a machine usable, and is no wall.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import anyio
from anyio.to_thread import run_sync

EVERY = 0.25
"""Seconds between two looks."""

Over = Literal["memory", "processes"]


class Bounds(NamedTuple):
    """The most that a program may take together with all that it started; 0: that is not watched."""

    memory: int = 0
    """Bytes."""
    processes: int = 0

    @property
    def any(self) -> bool:
        return self.memory > 0 or self.processes > 0


NOT_WATCHED = Bounds()


class Seen(NamedTuple):
    parent: int
    resident: int
    """Bytes, those that it shares with others included."""


async def over(pid: int, bounds: Bounds) -> Over:
    """Which of the bounds was passed, once one is."""
    while True:
        await anyio.sleep(EVERY)
        if passed := await run_sync(passed_now, pid, bounds, abandon_on_cancel=True):
            return passed


def passed_now(pid: int, bounds: Bounds) -> Over | None:
    """Which of the bounds is passed at this moment."""
    seen = dict(_processes())
    family = descendants(pid, {number: each.parent for number, each in seen.items()})
    if bounds.processes and len(family) > bounds.processes:
        return "processes"
    # What processes share is counted for each of them here: only a sum that is too much is looked at closely.
    roughly = sum(seen[number].resident for number in family if number in seen)
    if bounds.memory and roughly > bounds.memory and sum(map(_share, family)) > bounds.memory:
        return "memory"
    return None


def descendants(pid: int, parents: dict[int, int]) -> list[int]:
    """The process and all below it, given the parent of each."""
    children: dict[int, list[int]] = {}
    for number, parent in parents.items():
        children.setdefault(parent, []).append(number)
    found = [pid]
    for number in found:
        found += children.get(number, ())
    return found


def _processes() -> Iterator[tuple[int, Seen]]:
    page = _page_size()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                text = Path("/proc", name, "stat").read_text(errors="replace")
                fields = text.rpartition(")")[2].split()
                yield int(name), Seen(int(fields[1]), int(fields[21]) * page)


def _page_size() -> int:
    import resource

    return resource.getpagesize()


def _share(pid: int) -> int:
    """Bytes of memory that the process takes, where what it shares is divided among the sharers."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
