"""A program that runs another one and ends only when nothing of it is left; it imports nothing of Handrail's.

All that the other program starts is below the guardian, also what left its group or session. It ends
everything when the program has ended, when it is told to, and when the process that started it is gone.

    SIGTERM: ask everything to end, then kill it.    SIGQUIT: kill it now.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE = 1.5
"""Seconds between asking and killing; less than those after which whoever asked loses patience."""
PAUSE = 0.01
KILLING = 5.0
LEFT = b"[processes it left in the background were stopped]\n"

libc = ctypes.CDLL(None, use_errno=True)


class Told(Exception):
    """Somebody wants the end, so many seconds from now at the latest."""

    def __init__(self, grace: float) -> None:
        self.grace = grace


def guard(parent: int, become: Callable[[], NoReturn]) -> int:
    """Let a child become the program; its exit status, once all is gone."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        return 1  # it was gone before it could be watched
    for number, grace in ((signal.SIGTERM, GRACE), (signal.SIGHUP, GRACE), (signal.SIGQUIT, 0.0)):
        signal.signal(number, _teller(grace))
    child = os.fork()
    if child == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        become()
    status, grace = 0, GRACE
    try:
        status = _wait_for(child)
        if below(os.getpid()):
            os.write(1, LEFT)
    except Told as told:
        grace = told.grace
        if not grace:
            _kill_group(child)
    except OSError:
        pass  # nobody reads the note any more
    try:
        _end_all(grace)
    except Told:
        _kill_group(child)  # without a look at all processes, of which there may be very many
        _end_all(0.0)
    return status


def leave(status: int) -> NoReturn:
    """End as the child has ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _teller(grace: float) -> Callable[[int, FrameType | None], None]:
    def told(_number: int, _frame: FrameType | None) -> None:
        raise Told(grace)

    return told


def _wait_for(child: int) -> int:
    while True:
        number, status = os.wait()
        if number == child:
            return status


def _end_all(grace: float) -> None:
    """Ask all that is below to end, and kill what does not."""
    limit = time.monotonic() + grace
    if grace:
        _signal_all(signal.SIGTERM)
    while _anything_left() and time.monotonic() < limit:
        time.sleep(PAUSE)
    limit = time.monotonic() + KILLING
    while _anything_left() and time.monotonic() < limit:
        # Again and again: what is killed may have started another one a moment ago, in a group of its own.
        _kill_groups()
        time.sleep(PAUSE)


def _anything_left() -> bool:
    """Collect what has ended; whether a child is left. Whatever loses its parent becomes one."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def _signal_all(number: int) -> None:
    for pid in below(os.getpid()):
        try:
            os.kill(pid, number)
        except OSError:
            continue  # it is gone, or another user's


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        return  # nothing of it is left


def _kill_groups() -> None:
    """Kill by groups: the kernel ends all of one at once, however quickly they start others."""
    ours = os.getpgid(0)
    for pid in below(os.getpid()):
        try:
            group = os.getpgid(pid)
        except OSError:
            continue  # it is gone, with its group
        if group != ours:
            _kill_group(group)


def below(pid: int) -> list[int]:
    """All processes that descend from this one and run."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, *_ = file.read().rpartition(b")")[2].split()
        except (OSError, ValueError):
            continue
        children.setdefault(int(parent), []).append(int(name) * (-1 if state in b"ZX" else 1))
    found = list(children.get(pid, ()))
    for each in found:
        found += children.get(abs(each), ())
    return [each for each in found if each > 0]
