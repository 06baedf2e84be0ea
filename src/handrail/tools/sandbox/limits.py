"""Limits on a command's memory, processes and files; the cgroup that enforces them.

Address space is not limited: Node, Java, Go and sanitizers reserve far more of it than they use. A limit on
memory needs a cgroup, which not every user may make; where there is none, use is checked now and then.

Root can make cgroups, and so can a desktop's user in some folders. Both cgroup versions are supported.
"""

import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from handrail.tools.process import ResourceLimits

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

FILE_BYTES = 8 << 30
OPEN_FILES = 65_536  # per process
PROCESSES = 2_048  # the kernel also counts threads; without a cgroup only processes are counted
CGROUP_ROOT = Path("/sys/fs/cgroup")
CGROUP_PREFIX = "handrail-"
JOIN_SCRIPT = """
n=$1; shift
while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 125; shift; n=$((n - 1)); done
exec "$@"
"""
SWAP_FILES = ("memory.swap.max", "memory.swappiness")
MEMORY_EVENTS = ("memory.events", "memory.oom_control")
REMOVE_SECONDS = 2.0  # seconds to wait for the last processes of a cgroup to end
PAUSE = 0.01

_numbers = count(1)


class Cgroup(NamedTuple):
    folders: tuple[Path, ...]  # one folder, or with cgroup version 1 one for each kind of limit

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that a process writes `0` into to join."""
        return tuple(folder / "cgroup.procs" for folder in self.folders)

    def joined(self, words: list[str]) -> list[str]:
        """The command with a prefix that joins the cgroup first."""
        files = list(map(str, self.files))
        return ["/bin/sh", "-c", JOIN_SCRIPT, "sh", str(len(files)), *files, *words]

    @property
    def is_empty(self) -> bool:
        return not any(_lines(file) for file in self.files)

    def remove(self) -> None:
        """Remove it, and kill what is left in it."""
        for folder in self.folders:
            _remove(folder)

    def reached(self) -> str:
        """The limits that were reached, in words; empty if none."""
        memory = any(_count(folder / file, "oom_kill") for folder in self.folders for file in MEMORY_EVENTS)
        processes = any(_count(folder / "pids.events", "max") for folder in self.folders)
        return " and ".join(["memory"] * memory + ["number of processes"] * processes)


@asynccontextmanager
async def temporary_cgroup(
    limits: ResourceLimits, made: Cgroup | None = None
) -> AsyncIterator[Cgroup | None]:
    """A cgroup for one command; None if none can be made. Kills what is left in it at the end.

    `made` is one with these limits that exists already.
    """
    cgroup = made or make_cgroup(limits)
    try:
        yield cgroup
    finally:
        _removing[:] = [each for each in _removing if not each.done()]
        if cgroup and cgroup.is_empty:  # the kernel takes its time, and nobody has to wait for it
            _removing.append(_remover().submit(cgroup.remove))
        elif cgroup:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(cgroup.remove)


@cache
def _remover() -> "ThreadPoolExecutor":
    """One thread for all: to start one for each command would let that wait."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(max_workers=1)


_removing: list["Future[None]"] = []


def wait_until_removed() -> None:
    """Return when the cgroups of ended commands are gone."""
    while _removing:
        _removing.pop().result()


def make_cgroup(limits: ResourceLimits) -> Cgroup | None:
    """A new cgroup with these limits; None if none can be made."""
    name = f"{CGROUP_PREFIX}{os.getpid()}-{next(_numbers)}"
    made: list[Path] = []
    try:
        for place, values in _cgroup_parents(limits):
            _remove_leftovers(place)
            folder = place / name
            folder.mkdir()
            made.append(folder)
            for file, value in values.items():
                _write(f"{folder}/{file}", value)
            for file in SWAP_FILES if "memory" in "".join(values) else ():
                with suppress(OSError):
                    _write(f"{folder}/{file}", 0)
    except OSError:
        for folder in made:
            _remove(folder)
        return None
    return Cgroup(tuple(made)) if made else None


def _cgroup_parents(limits: ResourceLimits) -> list[tuple[Path, dict[str, int]]]:
    """Folders in which cgroups can be made, with their limits; raises OSError if there are none."""
    lines = (line.split(":", 2) for line in _lines("/proc/self/cgroup"))
    ours = {kinds: path for _, kinds, path in lines}
    if (CGROUP_ROOT / "cgroup.controllers").exists():
        return [(_parent(ours[""]), {"memory.max": limits.memory, "pids.max": limits.processes})]
    files = {"memory": ("memory.limit_in_bytes", limits.memory), "pids": ("pids.max", limits.processes)}
    places = {kind: CGROUP_ROOT / kind / ours[kind].lstrip("/") for kind in files}
    found = [(places[kind], {file: value}) for kind, (file, value) in files.items()]
    if all(place.is_dir() for place, _ in found):
        return found
    raise FileNotFoundError(str(CGROUP_ROOT))


def _parent(ours: str) -> Path:
    """The nearest folder at or above our own cgroup that can limit memory and processes."""
    place = CGROUP_ROOT / ours.lstrip("/")
    while place.is_relative_to(CGROUP_ROOT):
        controllers = (place / "cgroup.subtree_control").read_text().split()
        if {"memory", "pids"} <= set(controllers) and os.access(place, os.W_OK):
            return place
        place = place.parent
    raise FileNotFoundError(ours)


def _remove_leftovers(place: Path) -> None:
    """Remove empty cgroups that a killed Handrail left behind."""
    for name in os.listdir(place):
        pid = name.removeprefix(CGROUP_PREFIX).partition("-")[0] if name.startswith(CGROUP_PREFIX) else ""
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            with suppress(OSError):
                os.rmdir(place / name)


def _remove(folder: Path) -> None:
    limit = time.monotonic() + REMOVE_SECONDS
    while folder.exists() and time.monotonic() < limit:
        try:
            folder.rmdir()
        except OSError:
            for pid in _lines(folder / "cgroup.procs"):
                with suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(PAUSE)


def _write(path: str, value: int) -> None:
    """Write to a file that the kernel has made; it never makes one."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, str(value).encode())
    finally:
        os.close(file)


def _lines(path: str | Path) -> list[str]:
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        return file.read().decode().splitlines()
    return []


def _count(file: Path, name: str) -> int:
    counts = dict(line.partition(" ")[::2] for line in _lines(file))
    number = counts.get(name, "")
    return int(number) if number.isdigit() else 0
