"""A limit on the processor's time, so that a test of a hostile text fails instead of hanging."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 60.0


@contextmanager
def no_hang() -> Iterator[None]:
    """Raises where what is inside uses the processor for a minute."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError("it does not end")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
