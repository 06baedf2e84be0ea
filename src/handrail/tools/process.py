"""Running a program in a process group of its own, with a deadline, so that nothing of it is left behind.

A child that leaves the group on purpose (`setsid`) is not reached: that takes a sandbox or a guardian, which
lead their groups, and end all that is below them before they end themselves.
"""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.abc import Process

from handrail.tools.watchdog import NOT_WATCHED, Bounds, Over, over

CHUNK = 1 << 20
KILL_AFTER = 2.0
"""Seconds between asking a group to end and ending it."""
KILL_AFTER_CANCEL = 0.5
AT_ONCE = 6.0
"""Seconds that a guardian has to kill what is below it."""
DRAIN = 0.5
"""Seconds for the last output of a program that has ended while a child of it still holds the pipe."""
FIRST_POLL = 0.001
POLL = 0.02


class Ended(NamedTuple):
    code: int | None
    """Exit status, negative for a signal; None when it was stopped by us."""
    timed_out: bool
    left_running: bool
    """Children were still running when the program ended, and were stopped."""
    seconds: float
    over: Over | None = None
    """It was stopped because it took more than it may."""


async def run_process(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    take: Callable[[bytes], bool],
    errors: int = subprocess.STDOUT,
    given: int = subprocess.DEVNULL,
    bounds: Bounds = NOT_WATCHED,
) -> Ended:
    """Run until the end, the deadline, or until `take` has had enough and returns False.

    `take` gets standard output and error as they come, the error only where `errors` names no descriptor for
    it; `given` is a descriptor of standard input. Cancelling
    stops the whole group. What `bounds` names is watched, and stopped at once where it is passed.
    """
    began = time.monotonic()
    reading, writing = os.pipe()
    try:
        with suppress(OSError, AttributeError):
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, CHUNK)
        os.set_blocking(reading, False)
        try:
            process = await anyio.open_process(
                list(words),
                stdin=given,
                stdout=writing,
                stderr=errors,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        finally:
            os.close(writing)
        watched = _Watched(process, bounds)
        return await _follow(watched, reading, timeout, take, began)
    finally:
        os.close(reading)


class _Watched:
    """A process, and which of its bounds it has passed."""

    def __init__(self, process: Process, bounds: Bounds) -> None:
        self.process, self.bounds = process, bounds
        self.over: Over | None = None

    async def watch(self, scope: anyio.CancelScope) -> None:
        self.over = await over(self.process.pid, self.bounds)
        scope.cancel()


async def _follow(
    watched: _Watched, reading: int, timeout: float, take: Callable[[bytes], bool], began: float
) -> Ended:
    process, grace = watched.process, KILL_AFTER_CANCEL
    left = False
    try:
        with anyio.move_on_after(timeout) as limit:
            async with anyio.create_task_group() as tasks:
                if watched.bounds.any:
                    tasks.start_soon(watched.watch, tasks.cancel_scope)
                if await _read(process, reading, take):
                    await process.wait()
                tasks.cancel_scope.cancel()
        code = process.returncode
        grace = 0.0 if watched.over else KILL_AFTER
    finally:
        with anyio.CancelScope(shield=True):
            left = await _stop(process, grace)
            await process.aclose()
    ended = Ended(code, limit.cancelled_caught, left and code is not None, time.monotonic() - began)
    return ended._replace(over=watched.over)


async def _read(process: Process, reading: int, take: Callable[[bytes], bool]) -> bool:
    """Give all output to `take`; False when it had enough."""
    enough = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_after_exit, process, tasks.cancel_scope)
        while not enough:
            await anyio.wait_readable(reading)
            try:
                chunk = os.read(reading, CHUNK)
            except BlockingIOError:
                continue
            if not chunk:
                break
            enough = not take(chunk)
        tasks.cancel_scope.cancel()
    return not enough


async def _cancel_after_exit(process: Process, scope: anyio.CancelScope) -> None:
    await process.wait()
    await anyio.sleep(DRAIN)
    scope.cancel()


async def _stop(process: Process, grace: float) -> bool:
    """End whatever is left of the group; whether there was anything."""
    group = process.pid
    if not _running(group):
        return False
    _signal(group, signal.SIGTERM)
    if await _ends_within(group, grace):
        return True
    if process.returncode is None:
        # A guardian takes this for its last word; whoever is none ends by it, or a moment later.
        process.send_signal(signal.SIGQUIT)
        if await _ends_within(group, AT_ONCE):
            return True
    _signal(group, signal.SIGKILL)
    with anyio.move_on_after(KILL_AFTER):
        await process.wait()
    return True


async def _ends_within(group: int, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        # No event tells that the last of a group has ended; most end at once.
        pause = FIRST_POLL
        while _running(group):
            await anyio.sleep(pause)
            pause = min(2 * pause, POLL)
        return True
    return False


def _running(group: int) -> bool:
    """Whether a process of the group runs; one that has ended and waits to be collected does not."""
    if not _signal(group, 0):
        return False
    # Not by a pattern: that asks about each file, and fails where a process ends meanwhile.
    known = [_state_and_group(Path("/proc", name, "stat")) for name in os.listdir("/proc") if name.isdigit()]
    states = [state for state, number in known if number == str(group)]
    return not states or any(state not in "ZX" for state in states)


def _state_and_group(stat: Path) -> tuple[str, str]:
    """From what the kernel writes behind a process's name; empty when the process is gone."""
    try:
        state, _, group = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return "", ""
    return state, group


def _signal(group: int, number: int) -> bool:
    """Whether the group could be signalled; a group of another user's cannot."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
