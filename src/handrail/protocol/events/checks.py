"""Events of checking a turn's work with a command of the user's."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import Excerpt, FileSeen


class CheckStarted(EventBase):
    """Committed before the command runs."""

    type: Literal["check_started"] = "check_started"
    turn_id: str
    check_id: str
    command: str
    attempt: int
    """0 for the look before the first attempt."""


class CheckFinished(EventBase):
    type: Literal["check_finished"] = "check_finished"
    turn_id: str
    check_id: str
    passed: bool
    summary: str
    """One line for a person: `exit 1 in 0.4 s`."""
    content: str
    """The end of the output, as the model is shown it."""


class AttemptStarted(EventBase):
    """A fresh answer: the model is shown what it was shown up to `keep`, then `text`, nothing in between."""

    type: Literal["attempt_started"] = "attempt_started"
    turn_id: str
    number: int
    temperature: float
    keep: int
    """Sequence number of the message that began the turn."""
    text: str
    files: tuple[FileSeen, ...] = ()
    """Versions of files that `text` shows."""
    rewrite: Excerpt | None = None
    """The only thing that a small model is asked for."""
