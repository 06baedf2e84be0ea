"""Events of asking the user."""

from typing import Literal

from handrail.protocol.events.base import EventBase


class ApprovalAsked(EventBase):
    type: Literal["approval_asked"] = "approval_asked"
    turn_id: str
    approval_id: str
    call_id: str
    tool: str
    summary: str
    preview: str
    """The command or the diff itself."""
    why: str
    """Why it is asked."""
    key: str = ""
    """Stands for exactly what an `always` would allow."""
    entry: str = ""
    """What an `allow` would write into the user's list of allowed commands; empty: it cannot be said."""
    intent: str = ""
    """Id of the intent that is active."""


class ApprovalAnswered(EventBase):
    type: Literal["approval_answered"] = "approval_answered"
    approval_id: str
    decision: Literal["once", "always", "allow", "reject", "nobody", "cancelled"]
    note: str = ""
    """The user's reason; it goes to the model."""


class ApprovalPicked(EventBase):
    """The user picked this very command to run it, so that nothing more was asked about it."""

    type: Literal["approval_picked"] = "approval_picked"
    turn_id: str
    call_id: str
    tool: str
    preview: str
    """The command itself."""
    why: str
    """Why it would have been asked."""
    key: str = ""
    """Stands for exactly what was approved, this once."""


class QuestionAsked(EventBase):
    type: Literal["question_asked"] = "question_asked"
    turn_id: str
    question_id: str
    call_id: str
    question: str
    options: tuple[str, ...] = ()


class QuestionAnswered(EventBase):
    type: Literal["question_answered"] = "question_answered"
    question_id: str
    answer: str
    by: Literal["user", "nobody", "cancelled"] = "user"
