"""Events of commands that run in the background."""

from typing import Literal

from handrail.protocol.events.base import EventBase

BackgroundEnd = Literal["exited", "stopped", "limit", "session", "interrupted"]
"""By itself, by somebody's word, at a limit, with the session, or with Handrail."""


class BackgroundStarted(EventBase):
    """Committed before the command runs."""

    type: Literal["background_started"] = "background_started"
    background_id: str
    """Short, and new in the session: `b1`."""
    turn_id: str
    call_id: str
    command: str
    """On one line."""


class BackgroundEnded(EventBase):
    """Committed when nothing of the command runs any more."""

    type: Literal["background_ended"] = "background_ended"
    background_id: str
    command: str
    how: BackgroundEnd
    code: int | None = None
    """Exit status, negative for a signal; None where it was stopped."""
    summary: str = ""
    """One line for a person: `exit 1 in 4.2 s`."""
    shown: str = ""
    """The end of its output, capped."""
    output: str = ""
    """Blob of the output, as far as it was kept."""
    seconds: float = 0.0
