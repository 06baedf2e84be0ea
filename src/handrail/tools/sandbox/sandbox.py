"""The sandbox of this machine: what it gives, and a command confined by it."""

import os
import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
from pydantic import ValidationError

from handrail import __version__
from handrail.storage.scratch import make_scratch, recall, remember, remove_empty, remove_scratch
from handrail.tools.sandbox import bubblewrap, landlock
from handrail.tools.sandbox.places import Ground, absent, environment
from handrail.tools.sandbox.protection import Protection

GOOD_FOR = 24 * 3600.0
"""Seconds for which what was found is believed."""


class Confined(NamedTuple):
    words: list[str]
    environ: Mapping[str, str]


class Sandbox:
    """Looks once a process, and no more than once a day where it can keep what it found."""

    def __init__(self, kept_in: Path | None = None, found: Protection | None = None) -> None:
        self._file = kept_in / "sandbox.json" if kept_in else None
        self._found = found
        self._looking: anyio.Lock | None = None

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
        match found.name:
            case "bubblewrap":
                program = bubblewrap.find_bubblewrap() or "bwrap"
                wrapped = bubblewrap.confined(
                    program, words, ground, network=network, counted=found.processes
                )
                made = absent(ground)
                try:
                    yield Confined(wrapped, environment(ground.environ, bubblewrap.TEMP))
                finally:
                    # What bubblewrap mounts something on has to be there, so it made these.
                    remove_empty(made)
            case "Landlock":
                temp = make_scratch()
                try:
                    wrapped = landlock.confined(words, ground, str(temp), network=network)
                    yield Confined(wrapped, environment(ground.environ, str(temp)))
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.to_thread.run_sync(remove_scratch, temp)
            case "none":
                yield Confined(list(words), ground.environ)

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
