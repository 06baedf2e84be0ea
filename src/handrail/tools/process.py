"""Run a program in its own process group with a deadline and resource limits.

Resource use is checked every quarter of a second, so a program can exceed its limits for a moment.

A child that leaves the group on purpose (`setsid`) is not reached. The sandbox and the launcher lead their
groups and end everything below them before they end themselves.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal, NamedTuple, Protocol

import anyio
from anyio.to_thread import run_sync

from handrail.tools.secrets import without_secrets

SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin")
WATCH_INTERVAL = 0.25
NO_STDERR = subprocess.DEVNULL
"""As `stderr`: errors are not part of the output."""

ExceededLimit = Literal["memory", "processes"]
OnOutput = Callable[[bytes], bool]  # gets each chunk of output; returns False to stop the program


def find_program(name: str) -> str | None:
    """The system's program of this name. Other folders on the PATH may belong to the workspace."""
    return shutil.which(name, path=os.pathsep.join(SYSTEM_FOLDERS))


class ResourceLimits(NamedTuple):
    """Limits on a program together with everything it starts: bytes and processes; 0 means no limit."""

    memory: int = 0
    processes: int = 0


NO_LIMITS = ResourceLimits()


def exceeded_limit(pid: int, limits: ResourceLimits) -> ExceededLimit | None:
    """Which limit the process and its descendants exceed now."""
    stats = _process_stats()
    children: dict[int, list[int]] = {}
    for number, stat in stats.items():
        children.setdefault(int(stat[1]), []).append(number)
    family = [pid]
    for number in family:
        family += children.get(number, ())
    if limits.processes and len(family) > limits.processes:
        return "processes"
    # Resident memory counts shared pages once per process, so a sum that is too large is checked again.
    pages = sum(int(stats[number][21]) for number in family if number in stats)
    too_much = limits.memory and pages * os.sysconf("SC_PAGE_SIZE") > limits.memory
    return "memory" if too_much and sum(map(_proportional_memory, family)) > limits.memory else None


def _process_stats() -> dict[int, list[str]]:
    """The fields of `/proc/PID/stat` from the state on, by process: state, parent, group and so on."""
    found: dict[int, list[str]] = {}
    # Not with a glob: that stats every file, and fails when a process ends meanwhile.
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                text = Path("/proc", name, "stat").read_text(errors="replace")
                if len(fields := text.rpartition(")")[2].split()) > 21:
                    found[int(name)] = fields
    return found


def _proportional_memory(pid: int) -> int:
    """Bytes of memory, with each shared page divided among the processes that share it."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


CHUNK = 1 << 20
KILL_AFTER = 2.0
KILL_AFTER_CANCEL = 0.5
LAUNCHER_SECONDS = 6.0  # seconds that the launcher has to kill what is below it
DRAIN_SECONDS = 0.5  # for the last output, while a child of an ended program still holds the pipe
FIRST_POLL = 0.0005
QUICK_POLLS = 6
POLL = 0.02


class ProcessResult(NamedTuple):
    code: int | None  # exit status, negative for a signal; None if we stopped the program
    timed_out: bool
    left_running: bool  # children were still running when the program ended, and were stopped
    seconds: float
    over: ExceededLimit | None = None
    whole_output: bool = False  # it was read to its end


class ProgramOutput(NamedTuple):
    code: int | None  # None if the program was stopped, so that the data may be incomplete
    data: bytes


class RunningProcess(Protocol):
    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...
    def send_signal(self, signal: signal.Signals) -> None: ...
    async def aclose(self) -> None: ...


StartProcess = Callable[..., Awaitable[RunningProcess]]  # `open_process`, or with the same arguments


async def open_process(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
) -> RunningProcess:
    """The program, started in a session and process group of its own."""
    return await anyio.open_process(
        list(words),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )


async def run_for_output(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    limit: int,
    stdin: bytes = b"",
    stderr: int = subprocess.STDOUT,
    limits: ResourceLimits = NO_LIMITS,
    start: StartProcess = open_process,
) -> ProgramOutput:
    """Run a program and return what it writes; it is stopped once it has written `limit` bytes."""
    output = bytearray()

    def collect(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) < limit

    with TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        ended = await run_process(
            words,
            folder=folder,
            environment=environment,
            timeout=timeout,
            on_output=collect,
            stderr=stderr,
            stdin=file.fileno() if stdin else subprocess.DEVNULL,
            limits=limits,
            start=start,
        )
    # A program that ended before it could be stopped has a code, but not all of its output was read.
    return ProgramOutput(ended.code if ended.whole_output else None, bytes(output))


async def run_process(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    on_output: OnOutput,
    stderr: int = subprocess.STDOUT,
    stdin: int = subprocess.DEVNULL,
    limits: ResourceLimits = NO_LIMITS,
    start: StartProcess = open_process,
) -> ProcessResult:
    """Run until the program ends, the deadline passes, a limit is exceeded or `on_output` returns False.

    `stderr` and `stdin` are file descriptors; without one, errors go to `on_output` too. Cancelling stops the
    whole process group.
    """
    began = time.monotonic()
    reading, writing = os.pipe()
    try:
        with suppress(OSError, AttributeError):
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, CHUNK)
        os.set_blocking(reading, False)
        try:
            process = await start(
                words, folder=folder, environment=environment, stdin=stdin, stdout=writing, stderr=stderr
            )
        finally:
            os.close(writing)
        ended = await _wait_for_end(process, reading, timeout, on_output, limits)
        return ended._replace(seconds=time.monotonic() - began)
    finally:
        os.close(reading)


async def _wait_for_end(
    process: RunningProcess, reading: int, timeout: float, on_output: OnOutput, limits: ResourceLimits
) -> ProcessResult:
    over: ExceededLimit | None = None

    async def watch(scope: anyio.CancelScope) -> None:
        nonlocal over
        while over is None:
            await anyio.sleep(WATCH_INTERVAL)
            over = await run_sync(exceeded_limit, process.pid, limits, abandon_on_cancel=True)
        scope.cancel()

    grace, left, whole = KILL_AFTER_CANCEL, False, False
    try:
        with anyio.move_on_after(timeout) as deadline:
            async with anyio.create_task_group() as tasks:
                if limits != NO_LIMITS:
                    tasks.start_soon(watch, tasks.cancel_scope)
                whole = await _read_output(process, reading, on_output)
                if whole:
                    await process.wait()
                tasks.cancel_scope.cancel()
        code = process.returncode
        grace = 0.0 if over else KILL_AFTER
    finally:
        with anyio.CancelScope(shield=True):
            left = await stop_group(process, grace)
            await process.aclose()
    return ProcessResult(code, deadline.cancelled_caught, left and code is not None, 0.0, over, whole)


async def _read_output(process: RunningProcess, reading: int, on_output: OnOutput) -> bool:
    """Pass the output to `on_output` until that asks to stop or the program has ended; whether it was all."""
    whole, stopped = False, False

    async def cancel_after_exit(scope: anyio.CancelScope) -> None:
        await process.wait()
        await anyio.sleep(DRAIN_SECONDS)
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_after_exit, tasks.cancel_scope)
        while not stopped:
            await anyio.wait_readable(reading)
            try:
                chunk = os.read(reading, CHUNK)
            except BlockingIOError:
                continue
            if not chunk:
                whole = True
                break
            stopped = not on_output(chunk)
        tasks.cancel_scope.cancel()
    return whole


async def stop_group(process: RunningProcess, grace: float) -> bool:
    """End what is left of the group; whether anything was left."""
    group = process.pid
    if process.returncode is not None and await _vanishes(group):
        return False
    if not _is_group_running(group):
        return False
    _signal_group(group, signal.SIGTERM)
    if await _ends_within(group, grace):
        return True
    if process.returncode is None:
        # The launcher then kills everything below it; any other program ends by this signal or the next.
        process.send_signal(signal.SIGQUIT)
        if await _ends_within(group, LAUNCHER_SECONDS):
            return True
    _signal_group(group, signal.SIGKILL)
    with anyio.move_on_after(KILL_AFTER):
        await process.wait()
    return True


async def _vanishes(group: int) -> bool:
    """Whether the group is gone in a moment, as that of an ended sandbox is; asks without a look at /proc."""
    for attempt in range(QUICK_POLLS):
        if not _signal_group(group, 0):
            return True
        await anyio.sleep(FIRST_POLL * 2**attempt)
    return False


async def _ends_within(group: int, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        # No event reports the end of a group's last process, so this polls; most groups end at once.
        pause = FIRST_POLL
        while _is_group_running(group):
            await anyio.sleep(pause)
            pause = min(2 * pause, POLL)
        return True
    return False


def _is_group_running(group: int) -> bool:
    """Whether a process of the group runs; a zombie does not count."""
    if not _signal_group(group, 0):
        return False
    states = [stat[0] for stat in _process_stats().values() if stat[2] == str(group)]
    return not states or any(state not in "ZX" for state in states)


def _signal_group(group: int, number: int) -> bool:
    """Whether the group could be signalled: it exists and belongs to this user."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


START_SECONDS = 5.0
NICE_OPTIONS = ("-n", "10")
SOURCE_ROOT = Path(__file__).resolve().parents[2]


def start_in_background(module: str, words: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
    """Start one of our modules in a session of its own, without secrets.

    If it dies it is started again, twice. That it cannot be started is not reported: nothing waits for it.
    """
    paths = [os.path.abspath(each) for each in environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    nice = find_program("nice")
    python = [*([nice, *NICE_OPTIONS] if nice else ()), sys.executable, "-P", "-m", module]
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            # The shell ends at once, so init collects its child and we need not.
            ["/bin/sh", "-c", '("$@" || "$@" || "$@") &', "sh", *python, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=without_secrets(environ) | {"PYTHONPATH": os.pathsep.join([str(SOURCE_ROOT), *paths])},
            start_new_session=True,
            timeout=START_SECONDS,
            check=False,
        )
