"""Using the child from a process: find it or start it, wait until it answers, notice when it is gone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path

import anyio

from handrail.config.places import make_private
from handrail.models.embedded.files import ModelFile
from handrail.models.embedded.locks import Lock, try_lock
from handrail.models.embedded.machine import threads, window
from handrail.models.embedded.notice import ANOTHER_RUNS, LOAD_SECONDS, Notices, Running
from handrail.protocol.errors import GiveUp

GRACE = 60.0
"""Seconds that the child waits for the next client, so that one command after the other finds it warm."""
LAUNCH_SECONDS = 30.0
STOP_SECONDS = 5.0
POLL_SECONDS = 0.05
GONE_SECONDS = 2.0
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")
"""What the child is told of our environment: no key and no proxy is any of its business."""
SOURCE = Path(__file__).resolve().parents[3]
QUIET_WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that wait sleep instead of spinning: beside a busy program this is much faster (decision 007)."""


class Child:
    """One process's use of the one child that serves a model file."""

    def __init__(self, file: ModelFile, path: Path, folder: Path, grace: float = GRACE) -> None:
        """`folder` is where model files and what is noted about them are kept."""
        self.file = file
        self.notices = Notices(folder / "run" / file.model)
        self._path = path
        self._stamps = folder
        self._grace = grace
        self._client: Lock | None = None

    def running(self) -> Running | None:
        """Where it answers; None while it does not."""
        return self.notices.running()

    async def attach(self) -> AsyncGenerator[float, None]:
        """Seconds waited so far, until the child answers. GiveUp, with its last words, where it cannot."""
        began = time.monotonic()
        started = False
        make_private(self.notices.folder)
        while not (self._join() and self.running()):
            if time.monotonic() - began > LOAD_SECONDS:
                await self.stop()
                raise self._failed(f"did not load within {LOAD_SECONDS} s")
            if self._client and not self.notices.lives():
                if started:
                    raise self._failed("ended while it was loading")
                started = await anyio.to_thread.run_sync(self._launch)
            yield time.monotonic() - began
            await anyio.sleep(POLL_SECONDS)

    async def gone(self, known: Running | None) -> bool:
        """Whether the child that was known has ended; one that is just dying is given a moment for it."""
        with anyio.move_on_after(GONE_SECONDS):
            # No event tells that another process's lock is free.
            while self.running() == known is not None:  # noqa: ASYNC110
                await anyio.sleep(POLL_SECONDS)
        return known is None or self.running() != known

    async def stop(self) -> None:
        """End the child, whoever uses it."""
        running = self.running()
        self.notices.server.unlink(missing_ok=True)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if running and self.notices.lives():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(running.pid, number)
            with anyio.move_on_after(STOP_SECONDS):
                while self.notices.lives():  # noqa: ASYNC110
                    await anyio.sleep(POLL_SECONDS)

    def release(self) -> None:
        """Use it no more. With its last user gone, it ends after the grace."""
        if self._client is not None:
            self._client.release()
            self._client = None

    def _join(self) -> bool:
        """Be counted as a client; not possible in the moment in which the child looks for others, or ends."""
        if self._client is None:
            self._client = try_lock(self.notices.clients_lock, shared=True)
            if self._client is not None:
                os.utime(self.notices.clients_lock)
        return self._client is not None

    def _launch(self) -> bool:
        """Start the child; whether it is ours that runs now."""
        options = {
            "--model": self.file.model,
            "--file": self._path,
            "--stamps": self._stamps,
            "--folder": self.notices.folder,
            "--window": window(),
            "--threads": threads(),
            "--grace": self._grace,
        }
        words = [str(word) for pair in options.items() for word in pair]
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "handrail.models.embedded.server", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self.notices.folder,
                env=child_environment(os.environ),
                start_new_session=True,
                timeout=LAUNCH_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GiveUp(f"The small model's process cannot be started: {error}") from error
        if done.returncode not in {0, ANOTHER_RUNS}:
            words_said = done.stderr.decode(errors="replace").strip().splitlines() or [f"{done.returncode}"]
            raise GiveUp(f"The small model's process cannot be started: {words_said[-1]}")
        return done.returncode == 0

    def _failed(self, what: str) -> GiveUp:
        words = self.notices.last_words()
        return GiveUp(
            f"The small model's process {what}{f': {words}' if words else ''}. Its log is {self.notices.log}."
            " Use a key or a local server until it is mended."
        )


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What the child gets to see. It runs the code that runs here, from another folder."""
    kept = {name: environment[name] for name in KEPT_VARIABLES if name in environment}
    given = [os.path.abspath(each) for each in kept.get("PYTHONPATH", "").split(os.pathsep) if each]
    return kept | {"PYTHONPATH": os.pathsep.join([str(SOURCE), *given])} | QUIET_WAITING
