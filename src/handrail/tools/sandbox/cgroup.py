"""A control group of the kernel's for one command: a wall around its memory and the number of its processes.

There is one only where the rights at hand allow it: for root, and in the folders that a desktop leaves to its
user. What it is made of are folders and files of the kernel's, in either of its two forms.
"""

import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

ROOT = Path("/sys/fs/cgroup")
PREFIX = "handrail-"
JOIN = """
n=$1; shift
while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 125; shift; n=$((n - 1)); done
exec "$@"
"""
LEAVING = 2.0
"""Seconds in which the last processes of a group go."""
PAUSE = 0.01

_numbers = count(1)


class Wall(NamedTuple):
    """The most that a command may take together with all that it starts."""

    memory: int
    processes: int


class Group(NamedTuple):
    folders: tuple[Path, ...]
    """One, or in the older form one for each kind of limit."""

    def joined(self, words: list[str]) -> list[str]:
        """The command, which joins the group before it begins."""
        files = [str(folder / "cgroup.procs") for folder in self.folders]
        return ["/bin/sh", "-c", JOIN, "sh", str(len(files)), *files, *words]

    def reached(self) -> str:
        """Which limit it ran into, in words; empty where none."""
        found = []
        if any(_count(folder, "memory.events", "memory.oom_control", "oom_kill") for folder in self.folders):
            found.append("memory")
        if any(_count(folder, "pids.events", "pids.events", "max") for folder in self.folders):
            found.append("number of processes")
        return " and ".join(found)


@asynccontextmanager
async def group(wall: Wall) -> AsyncIterator[Group | None]:
    """A group for one command; None where there can be none. What is still in it at the end is killed."""
    made = _make(wall)
    try:
        yield made
    finally:
        with anyio.CancelScope(shield=True):
            for folder in made.folders if made else ():
                await anyio.to_thread.run_sync(_remove, folder)


def _make(wall: Wall) -> Group | None:
    name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
    made: list[Path] = []
    try:
        for place, limits in _places(wall):
            _sweep(place)
            (place / name).mkdir()
            made.append(place / name)
            for file, value in limits.items():
                (place / name / file).write_text(str(value))
            _no_swap(place / name)
    except OSError:
        for folder in made:
            _remove(folder)
        return None
    return Group(tuple(made)) if made else None


def _places(wall: Wall) -> list[tuple[Path, dict[str, int]]]:
    """The folders in which groups can be made, with their limits; raises OSError where there are none."""
    ours = {kinds: path for _, kinds, path in map(_split, _lines("/proc/self/cgroup"))}
    if (ROOT / "cgroup.controllers").exists():
        return [(_parent(ours[""]), {"memory.max": wall.memory, "pids.max": wall.processes})]
    limits = {"memory": ("memory.limit_in_bytes", wall.memory), "pids": ("pids.max", wall.processes)}
    found = [(ROOT / kind / ours[kind].lstrip("/"), {file: most}) for kind, (file, most) in limits.items()]
    if all(place.is_dir() for place, _ in found):
        return found
    raise FileNotFoundError(str(ROOT))


def _parent(ours: str) -> Path:
    """The nearest folder at or above our own group whose groups have limits of memory and processes."""
    place = ROOT / ours.lstrip("/")
    while place.is_relative_to(ROOT):
        given = (place / "cgroup.subtree_control").read_text().split()
        if {"memory", "pids"} <= set(given) and os.access(place, os.W_OK):
            return place
        place = place.parent
    raise FileNotFoundError(ours)


def _no_swap(folder: Path) -> None:
    for file, value in (("memory.swap.max", "0"), ("memory.swappiness", "0")):
        with suppress(OSError):
            if (folder / file).exists():
                (folder / file).write_text(value)


def _sweep(place: Path) -> None:
    """Remove the empty groups of processes that were killed."""
    for folder in place.glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with suppress(OSError):
                folder.rmdir()


def _remove(folder: Path) -> None:
    limit = time.monotonic() + LEAVING
    while time.monotonic() < limit:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            for pid in _lines(folder / "cgroup.procs"):
                with suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(PAUSE)
        else:
            return


def _split(line: str) -> tuple[str, str, str]:
    number, kinds, path = line.split(":", 2)
    return number, kinds, path


def _lines(path: str | Path) -> list[str]:
    with suppress(OSError):
        return Path(path).read_text().splitlines()
    return []


def _count(folder: Path, newer: str, older: str, what: str) -> int:
    for file in dict.fromkeys((newer, older)):
        for line in _lines(folder / file):
            name, _, number = line.partition(" ")
            if name == what and number.isdigit():
                return int(number)
    return 0
