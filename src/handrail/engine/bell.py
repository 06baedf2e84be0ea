"""A bell: tells everyone who waits that something may have changed."""

import anyio


class Bell:
    """Take a ticket, look, and wait on the ticket if there was nothing to see: no ring is missed."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ticket(self) -> anyio.Event:
        return self._event

    def ring(self) -> None:
        event, self._event = self._event, anyio.Event()
        event.set()
