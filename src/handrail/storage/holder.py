"""The holder of a stream: the one process that may append to it, by OS lock and epoch."""

import fcntl
import os
from types import TracebackType

from handrail.storage.log import Log


class Hold:
    """Being the holder. The lock dies with the process; the epoch shuts out a holder that only slept."""

    def __init__(self, stream: str, epoch: int, descriptor: int) -> None:
        self.stream = stream
        self.epoch = epoch
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> "Hold":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def try_hold(log: Log, stream: str) -> Hold | None:
    """Become the stream's holder, unless a living process is."""
    folder = log.folder / "locks"
    folder.mkdir(exist_ok=True, mode=0o700)
    descriptor = os.open(
        folder / f"{stream.replace(':', '-')}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    try:
        return Hold(stream, log.raise_epoch(stream), descriptor)
    except BaseException:
        os.close(descriptor)
        raise
