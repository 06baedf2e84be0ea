"""A bell: tells everyone who waits that something may have changed."""

import time
from collections.abc import Callable

import anyio

IDLE_SECONDS, BUSY_SECONDS, BUSY_FOR = 0.025, 0.005, 1.0
"""Between two looks; the shorter one for a while after something was seen."""


class Bell:
    """Take a ticket, look, and wait on the ticket if there was nothing to see: no ring is missed."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ticket(self) -> anyio.Event:
        return self._event

    def ring(self) -> None:
        event, self._event = self._event, anyio.Event()
        event.set()


async def ring_on_commits(bell: Bell, data_version: Callable[[], int]) -> None:
    """Ring when another process has committed."""
    version, busy_until = data_version(), 0.0
    while True:
        await anyio.sleep(BUSY_SECONDS if time.monotonic() < busy_until else IDLE_SECONDS)
        if (now := data_version()) != version:
            version, busy_until = now, time.monotonic() + BUSY_FOR
            bell.ring()
