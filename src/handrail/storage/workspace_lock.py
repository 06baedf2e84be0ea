"""The lock of those who change files: one process a workspace at a time, and a note of what it is about."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handrail.protocol.errors import StorageBusy, StorageProblem

WAIT_SECONDS = 10.0
NAME = "changes.lock"
TRACE = "trace.lock"


class Held:
    """Having the lock. It dies with its process; the note stays for the next one to read."""

    def __init__(self, descriptor: int, who: str) -> None:
        self._descriptor = descriptor
        self._who = who
        self.left = _read(descriptor)
        """What the last holder was about, if it died over it; empty otherwise."""

    def note(self, about: dict[str, Any]) -> None:
        """Say who holds it and what for. Not forced to the disk: it is for tidying up, not for the files."""
        data = json.dumps({"who": self._who, "pid": os.getpid(), **about}).encode()
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)


def is_clear(folder: Path) -> bool:
    """Whether nobody holds the lock, or died holding it."""
    try:
        return (folder / NAME).stat().st_size == 0
    except FileNotFoundError:
        return True


@contextmanager
def workspace_lock(
    folder: Path, who: str, seconds: float = WAIT_SECONDS, *, keeps_note: bool = False
) -> Iterator[Held]:
    """The lock, waited for; raises StorageBusy with who has it. What raises inside leaves the note.

    Who does not finish what the last holder was about keeps its note.
    """
    try:
        descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageProblem(f"{folder / NAME} cannot be opened: {error.strerror}.") from error
    try:
        _wait(descriptor, time.monotonic() + seconds, seconds)
        held = Held(descriptor, who)
        yield held
        if not keeps_note:
            held.clear()
    finally:
        os.close(descriptor)


@contextmanager
def trace_lock(folder: Path, seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """The lock of those who write to the trace, who may hold the other one or not; raises StorageBusy."""
    descriptor = os.open(folder / TRACE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait(descriptor, time.monotonic() + seconds, seconds)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, deadline: float, seconds: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                about = _read(descriptor)
                who = f" ({about['who']}, process {about['pid']})" if about else ""
                raise StorageBusy(
                    f"Another Handrail{who} has been changing files of this workspace for {seconds:.0f} s."
                    " Wait for it, or close it; then try again."
                ) from None
            time.sleep(0.005)
        else:
            return


def _read(descriptor: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and {"who", "pid"} <= set(found) else {}
