"""Events of checks (a command that must pass) and of fresh attempts."""

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import Excerpt, FileSeen


class CheckStarted(EventBase, tag="check_started"):
    """Committed before the command runs."""

    turn_id: str
    check_id: str
    command: str
    attempt: int
    """0 for the run before the first attempt."""


class CheckFinished(EventBase, tag="check_finished"):
    turn_id: str
    check_id: str
    passed: bool
    summary: str
    """One line for a person: `exit 1 in 0.4 s`."""
    content: str
    """The end of the output, as the model sees it."""


class AttemptStarted(EventBase, tag="attempt_started"):
    """A fresh answer: the model sees the conversation up to `keep`, then `text`, and nothing in between."""

    turn_id: str
    number: int
    temperature: float
    keep: int
    """Sequence number of the message that began the turn."""
    text: str
    files: tuple[FileSeen, ...] = ()
    rewrite: Excerpt | None = None
    """The one part that a small model is asked to rewrite."""


CheckEvent = CheckStarted | CheckFinished | AttemptStarted
