"""The deadlines of one answer."""

import time

from handrail.models.base import Deadlines
from handrail.protocol.errors import RetryLater


class Clock:
    """The deadlines of one answer on the monotonic clock."""

    def __init__(self, deadlines: Deadlines) -> None:
        self.deadlines = deadlines
        self._begun = self._heard = time.monotonic()
        self.answering = False
        """Whether bytes of an answer have come, so that the request may be billed."""

    def heard(self) -> None:
        """Bytes have come."""
        self._heard = time.monotonic()
        self.answering = True

    def left(self) -> float:
        """Seconds until the nearest deadline."""
        pause = self.deadlines.silence if self.answering else self.deadlines.first_byte
        now = time.monotonic()
        return max(0.0, min(self._heard + pause - now, self._begun + self.deadlines.whole - now))

    def expired(self, host: str) -> RetryLater:
        """The error for the deadline that has passed."""
        if time.monotonic() >= self._begun + self.deadlines.whole:
            words = f"did not finish its answer within {self.deadlines.whole:g} s"
        elif self.answering:
            words = f"fell silent for {self.deadlines.silence:g} s in the middle of its answer"
        else:
            words = f"sent nothing within {self.deadlines.first_byte:g} s"
        return RetryLater(f"{host} {words}.", billed=True)
