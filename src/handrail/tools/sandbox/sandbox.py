"""The sandbox of this machine: what it gives, and a command confined by it."""

import os
import platform
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import anyio
from pydantic import ValidationError

from handrail import __version__
from handrail.storage.scratch import (
    in_use,
    is_used,
    make_scratch,
    recall,
    remember,
    remove_empty,
    remove_scratch,
)
from handrail.tools.sandbox import bubblewrap, landlock
from handrail.tools.sandbox.cgroup import Group, Wall, group
from handrail.tools.sandbox.limits import PROCESSES, most_memory
from handrail.tools.sandbox.places import Ground, absent, environment, ours
from handrail.tools.sandbox.protection import Protection
from handrail.tools.watchdog import NOT_WATCHED, Bounds

GOOD_FOR = 24 * 3600.0
"""Seconds for which what was found is believed."""


class Confined(NamedTuple):
    words: list[str]
    environ: Mapping[str, str]
    bounds: Bounds = NOT_WATCHED
    """What has to be watched, because no kernel's limit holds it."""
    group: Group | None = None
    """The group that it runs in, which knows when a limit was reached."""

    def reached(self) -> str:
        """Which limits of the kernel the command ran into, in words."""
        return self.group.reached() if self.group else ""


class Sandbox:
    """Looks once a process, and no more than once a day where it can keep what it found."""

    def __init__(
        self, kept_in: Path | None = None, found: Protection | None = None, wall: Wall | None = None
    ) -> None:
        """`wall` is the most that a command may take; left out, a share of this machine."""
        self._file = kept_in / "sandbox.json" if kept_in else None
        self._lock = kept_in / "sandbox.lock" if kept_in else None
        self._found = found
        self._wall = wall or Wall(most_memory(), PROCESSES)
        self._looking: anyio.Lock | None = None

    def tidy(self, workspace: Path) -> None:
        """Remove what bubblewrap made for commands of a process that was killed."""
        left = [path for path in ours(workspace) if os.path.lexists(path)]
        if left and self._lock and not is_used(self._lock):
            remove_empty(left)

    async def protection(self) -> Protection:
        """What is given here."""
        self._looking = self._looking or anyio.Lock()
        async with self._looking:
            if self._found is None:
                self._found = self._recalled() or await self._look()
            return self._found

    async def look_again(self) -> Protection:
        """What is given here now, whatever was found before."""
        self._found = await self._look()
        return self._found

    @asynccontextmanager
    async def confine(
        self, words: Sequence[str], ground: Ground, *, network: bool = False
    ) -> AsyncIterator[Confined]:
        """The words and the environment that run a command confined, with its temp folder while it lasts."""
        found = await self.protection()
        # Without a sandbox a group is no wall against what wants out of it, and yet one against accidents.
        walled = found.walled or not found.active
        async with group(self._wall) if walled else nullcontext() as made:
            held = Bounds(
                0 if found.memory and made else self._wall.memory,
                0 if found.processes and (made or not found.walled) else self._wall.processes,
            )
            async with self._confined(found, words, ground, network=network) as confined:
                joined = made.joined(confined.words) if made else confined.words
                yield confined._replace(words=joined, bounds=held, group=made)

    @asynccontextmanager
    async def _confined(
        self, found: Protection, words: Sequence[str], ground: Ground, *, network: bool
    ) -> AsyncIterator[Confined]:
        match found.name:
            case "bubblewrap":
                program = bubblewrap.find_bubblewrap() or "bwrap"
                processes = self._wall.processes if found.processes and not found.walled else 0
                wrapped = bubblewrap.confined(program, words, ground, network=network, processes=processes)
                made = absent(ground)
                with in_use(self._lock) if made and self._lock else nullcontext():
                    try:
                        yield Confined(wrapped, environment(ground.environ, bubblewrap.TEMP))
                    finally:
                        # What bubblewrap mounts something on has to be there, so it made these.
                        remove_empty(made)
            case "Landlock":
                temp = make_scratch()
                try:
                    wrapped = landlock.confined(
                        words, ground, str(temp), network=network, processes=self._wall.processes
                    )
                    yield Confined(wrapped, environment(ground.environ, str(temp)))
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.to_thread.run_sync(remove_scratch, temp)
            case "none":
                guarded = list(words)
                if sys.platform == "linux":
                    guarded = landlock.guarded(words, self._wall.processes)
                yield Confined(guarded, ground.environ)

    async def _look(self) -> Protection:
        from handrail.tools.sandbox.probe import probe

        found = await probe()
        if self._file:
            remember(self._file, machine(), found.model_dump_json())
        return found

    def _recalled(self) -> Protection | None:
        text = recall(self._file, machine(), GOOD_FOR) if self._file else ""
        try:
            return Protection.model_validate_json(text) if text else None
        except ValidationError:
            return None


def machine() -> str:
    """All that what is given depends on: another kernel, container, user or bubblewrap is looked at anew."""
    program = bubblewrap.find_bubblewrap()
    installed = f"{program} {os.stat(program).st_mtime_ns}" if program else "none"
    spaces = [_text_of_link(f"/proc/self/ns/{name}") for name in ("user", "mnt")]
    return " ".join([__version__, platform.release(), str(os.geteuid()), *spaces, installed])


def _text_of_link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return "-"
