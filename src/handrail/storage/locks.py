"""Locks between processes: who may change files, write the trace, or append to a stream."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from handrail.config.files import FileLock
from handrail.protocol.errors import StorageBusy, StorageProblem
from handrail.storage.event_log import Log
from handrail.storage.log_database import HeldName

WAIT_SECONDS = 10.0
TRACE_SECONDS = 1.0
"""The lock is held for one append; lines that could not be written come with the next change."""
POLL_SECONDS = 0.005
CHANGES_LOCK = "changes.lock"
TRACE_LOCK = "trace.lock"


class HeldLock:
    """The workspace lock while it is held. It ends with its process; the note stays for the next holder."""

    def __init__(self, lock: FileLock, who: str) -> None:
        self._descriptor = lock.descriptor
        self._who = who
        self.left = _read_note(lock.descriptor)
        """The note of the last holder, if it died before it was finished; else empty."""

    def note(self, about: dict[str, Any]) -> None:
        """Write who holds the lock and why. Not synced: it only helps to tidy up."""
        data = json.dumps({"who": self._who, "pid": os.getpid(), **about}).encode()
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)


def is_unlocked(folder: Path) -> bool:
    """Whether nobody holds the workspace lock, or died holding it."""
    try:
        return (folder / CHANGES_LOCK).stat().st_size == 0
    except FileNotFoundError:
        return True


@contextmanager
def workspace_lock(
    folder: Path, who: str, seconds: float = WAIT_SECONDS, *, keeps_note: bool = False
) -> Iterator[HeldLock]:
    """Wait for the lock; raises StorageBusy, which names the holder. An exception inside leaves the note.

    Waiting blocks: in an event loop, use `wait_for_workspace`. A holder that does not finish what the last
    one began sets `keeps_note`.
    """
    try:
        lock = FileLock(folder / CHANGES_LOCK)
    except OSError as error:
        raise StorageProblem(f"{folder / CHANGES_LOCK} cannot be opened: {error.strerror}.") from error
    with lock:
        _acquire(lock, seconds)
        held = HeldLock(lock, who)
        yield held
        if not keeps_note:
            held.clear()


async def wait_for_workspace(
    held: ExitStack, folder: Path, who: str, seconds: float = WAIT_SECONDS, *, keeps_note: bool = False
) -> HeldLock:
    """The same without blocking the event loop; the lock is released with `held`."""
    import anyio

    deadline = time.monotonic() + seconds
    while True:
        try:
            return held.enter_context(workspace_lock(folder, who, seconds=0, keeps_note=keeps_note))
        except StorageBusy:
            if time.monotonic() > deadline:
                raise
        await anyio.sleep(POLL_SECONDS)


@contextmanager
def trace_lock(folder: Path, seconds: float = TRACE_SECONDS) -> Iterator[None]:
    """The lock of writers of the trace, with or without the workspace lock; raises StorageBusy."""
    with FileLock(folder / TRACE_LOCK) as lock:
        _acquire(lock, seconds)
        yield


def _acquire(lock: FileLock, seconds: float) -> None:
    if not lock.wait(seconds, poll=POLL_SECONDS):
        about = _read_note(lock.descriptor)
        who = f" ({about['who']}, process {about['pid']})" if about else ""
        message = f"Another Handrail{who} is changing files of this workspace."
        raise StorageBusy(f"{message} Wait for it, or close it, then try again.")


def _read_note(descriptor: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and {"who", "pid"} <= set(found) else {}


class StreamHold:
    """Being a stream's holder. The lock ends with the process; the epoch stops a holder that only slept."""

    def __init__(self, stream: str, epoch: int, lock: HeldName) -> None:
        self.stream = stream
        self.epoch = epoch
        self._lock = lock

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> "StreamHold":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_held(log: Log, stream: str) -> bool:
    """Whether a living process is the stream's holder."""
    return log.database.is_held(stream)


def try_hold_stream(log: Log, stream: str) -> StreamHold | None:
    """Become the stream's holder; None if a living process is."""
    lock = log.database.try_hold(stream)
    if lock is None:
        return None
    try:
        return StreamHold(stream, log.raise_epoch(stream), lock)
    except BaseException:
        lock.release()
        raise
