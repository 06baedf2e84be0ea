"""Events of the conversation: messages and turns."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import AttachedImage, FileSeen, FinishReason, Mode, Usage


class UserMessage(EventBase):
    type: Literal["user_message"] = "user_message"
    message_id: str
    turn_id: str
    text: str
    """As the user wrote it."""
    attached: str = ""
    """Content of mentioned files, as the model is shown it."""
    files: tuple[FileSeen, ...] = ()
    gone: tuple[str, ...] = ()
    """Files that the model knew, and was told that somebody else has deleted."""
    images: tuple[AttachedImage, ...] = ()
    unattached: tuple[str, ...] = ()
    """For the user: mentions whose content is not attached, and why."""
    mapped: tuple[str, ...] = ()
    """Files that the attached part of the repository map tells about."""
    steering: bool = False
    """Sent while its turn was already running."""
    runs: tuple[str, ...] = ()
    """Ended runs whose summaries are attached."""
    suggested: bool = False
    """The words are a model's: the user picked them."""
    run_id: str = ""
    """The paused run that it is a word to; the session's conversation does not have it then."""
    early: bool = False
    """Sent before the run asked what it asks now: nothing in it is an answer to that."""
    route: str = ""
    """Where it was to go by the user's word, of a message that a paused run got."""


class TurnStarted(EventBase):
    type: Literal["turn_started"] = "turn_started"
    turn_id: str
    number: int
    """1 for the first turn of the session."""
    model: str
    mode: Mode
    check: str = ""
    """The command that must pass before the turn counts as done."""
    attempts: int = 1
    """How many fresh answers may be tried against the check."""
    run_id: str = ""
    """The paused run that the message is a word to."""
    unrouted: bool = False
    """Its words do not say where the message goes: a model is asked first."""


class Nudged(EventBase):
    """The model was told by code what it is doing (for instance the same call three times)."""

    type: Literal["nudged"] = "nudged"
    turn_id: str
    text: str


class TurnFinished(EventBase):
    type: Literal["turn_finished"] = "turn_finished"
    turn_id: str
    reason: FinishReason
    detail: str = ""
    """For the user: why, and what to do."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    """None when a request's price is not known."""
    seconds: float = 0.0
    steps: int = 0
    """Requests made in this turn."""
