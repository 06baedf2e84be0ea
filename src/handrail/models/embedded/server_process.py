"""Finds or starts the embedded server process, within the cores and memory of this machine."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path

import anyio

from handrail.config.files import FileLock, try_lock
from handrail.config.places import make_private
from handrail.models.embedded.model_files import ModelFile
from handrail.models.embedded.server_files import EXIT_ANOTHER_RUNS, LOAD_SECONDS, RunningServer, ServerFiles
from handrail.protocol.errors import GiveUp

MAX_THREADS = 8
"""More threads do not help: memory is the bottleneck."""
WINDOW, SMALL_WINDOW = 8192, 4096
LARGE_MEMORY = 3_000_000_000
"""Free memory, in bytes, that allows the whole window."""
PROMPTS_BYTES = 256 << 20
"""Memory for earlier prompts, so that sessions taking turns do not read theirs again."""
KV_BYTES = 32_768
"""Memory per token of context, generously."""
SPARE_BYTES = 1_500_000_000


def thread_count() -> int:
    """Threads to compute with: one per physical core that this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits, cores = [usable, MAX_THREADS], set()
    with suppress(OSError, ValueError):  # a container may allow less
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
        limits.append(int(quota) // int(period))
    for core in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology"):
        with suppress(OSError):
            ids = [(core / name).read_text(encoding="utf-8") for name in ("physical_package_id", "core_id")]
            cores.add(tuple(ids))
    return max(1, min([*limits, len(cores) or usable]))


def fitting_window() -> int:
    """Tokens of context that fit into free memory."""
    free = _proc_bytes(Path("/proc/meminfo"), "MemAvailable")
    return WINDOW if free is None or free >= LARGE_MEMORY else SMALL_WINDOW


def memory_limit(file_size: int, window: int) -> int:
    """Memory limit of the server: a copy of its file, prompts and the window."""
    return file_size + PROMPTS_BYTES + window * KV_BYTES + SPARE_BYTES


def process_memory(pid: int) -> int | None:
    """Memory of a process in bytes, including its mapped file; None if unknown."""
    return _proc_bytes(Path(f"/proc/{pid}/status"), "VmRSS")


def _proc_bytes(path: Path, name: str) -> int | None:
    with suppress(OSError):
        if found := re.search(rf"^{name}:\s+(\d+) kB", path.read_text(encoding="utf-8"), re.MULTILINE):
            return int(found[1]) * 1024
    return None


GRACE_SECONDS = 60.0
"""Seconds that an unused server keeps running, so that the next command finds it warm."""
STOP_SECONDS = 5.0
POLL_SECONDS = 0.05
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")
"""The server's environment: no keys and no proxies."""
SOURCE = Path(__file__).resolve().parents[3]
PASSIVE_WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Waiting threads sleep instead of spinning, which is much faster beside a busy program (decision 007)."""


class ServerProcess:
    """A client of the one server process of a model file."""

    def __init__(self, file: ModelFile, path: Path, folder: Path, grace: float = GRACE_SECONDS) -> None:
        """`folder` holds model files and what is stored about them."""
        self.file = file
        self.files = ServerFiles(folder / "run" / file.model)
        self._path = path
        self._stamps = folder
        self._grace = grace
        self._client: FileLock | None = None

    def running(self) -> RunningServer | None:
        return self.files.running()

    async def connect(self) -> AsyncGenerator[float, None]:
        """Seconds waited so far, until the server answers. Raises GiveUp if it cannot."""
        began = time.monotonic()
        started = False
        make_private(self.files.folder)
        while not (self._join() and self.running()):
            if time.monotonic() - began > LOAD_SECONDS:
                await self.stop()
                raise self._failed(f"did not load within {LOAD_SECONDS} s")
            if self._client and not self.files.is_running():
                if started:
                    raise self._failed("ended while it was loading")
                started = await anyio.to_thread.run_sync(self._launch)
            yield time.monotonic() - began
            await anyio.sleep(POLL_SECONDS)

    async def has_exited(self, known: RunningServer | None) -> bool:
        """Whether the server has ended; one that is just ending gets a moment."""
        with anyio.move_on_after(2.0):
            # No event tells that another process's lock is free.
            while self.running() == known is not None:  # noqa: ASYNC110
                await anyio.sleep(POLL_SECONDS)
        return known is None or self.running() != known

    async def stop(self) -> None:
        """Stop the server, even if others use it."""
        running = self.running()
        self.files.server.unlink(missing_ok=True)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if running and self.files.is_running():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(running.pid, number)
            with anyio.move_on_after(STOP_SECONDS):
                while self.files.is_running():  # noqa: ASYNC110
                    await anyio.sleep(POLL_SECONDS)

    def release(self) -> None:
        """Stop using the server. It ends some time after its last client left."""
        if self._client is not None:
            self._client.release()
            self._client = None

    def _join(self) -> bool:
        """Register as a client; fails while the server looks for clients, or ends."""
        if self._client is None:
            self._client = try_lock(self.files.clients_lock, shared=True)
            if self._client is not None:
                os.utime(self.files.clients_lock)
        return self._client is not None

    def _launch(self) -> bool:
        """Start the server; returns whether ours is the one that runs."""
        options = {
            "--model": self.file.model,
            "--file": self._path,
            "--stamps": self._stamps,
            "--folder": self.files.folder,
            "--window": fitting_window(),
            "--threads": thread_count(),
            "--grace": self._grace,
        }
        arguments = [str(each) for option in options.items() for each in option]
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "handrail.models.embedded.server", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self.files.folder,
                env=child_environment(os.environ),
                start_new_session=True,
                timeout=30.0,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GiveUp(f"The small model's process cannot be started: {error}") from error
        if done.returncode not in {0, EXIT_ANOTHER_RUNS}:
            output = done.stderr.decode(errors="replace").strip().splitlines() or [f"{done.returncode}"]
            raise GiveUp(f"The small model's process cannot be started: {output[-1]}")
        return done.returncode == 0

    def _failed(self, what: str) -> GiveUp:
        reason = self.files.log_tail()
        return GiveUp(
            f"The small model's process {what}{f': {reason}' if reason else ''}. Its log is {self.files.log}."
            " Use a key or a local server until it works again."
        )


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The server's environment; it runs the same code from another folder."""
    kept = {name: environment[name] for name in KEPT_VARIABLES if name in environment}
    paths = [os.path.abspath(each) for each in kept.get("PYTHONPATH", "").split(os.pathsep) if each]
    return kept | {"PYTHONPATH": os.pathsep.join([str(SOURCE), *paths])} | PASSIVE_WAITING
