"""Events of asking the user: approvals and questions."""

from typing import Literal

from handrail.protocol.events.base import EventBase


class ApprovalAsked(EventBase, tag="approval_asked"):
    turn_id: str
    approval_id: str
    call_id: str
    tool: str
    summary: str
    preview: str
    """The command or the diff itself."""
    why: str
    key: str = ""
    """Identifies exactly what an `always` would allow."""
    entry: str = ""
    """What an `allow` would add to the user's list of allowed commands; empty: no entry can express it."""
    intent: str = ""


class ApprovalAnswered(EventBase, tag="approval_answered"):
    approval_id: str
    decision: Literal["once", "always", "allow", "reject", "nobody", "cancelled"]
    note: str = ""
    """The user's reason; it goes to the model."""


class ApprovalPicked(EventBase, tag="approval_picked"):
    """The user picked exactly this command to run, so no approval was asked for."""

    turn_id: str
    call_id: str
    tool: str
    preview: str
    why: str
    """Why approval would have been asked for."""
    key: str = ""
    """Identifies exactly what was approved, this once."""


class QuestionAsked(EventBase, tag="question_asked"):
    turn_id: str
    question_id: str
    call_id: str
    question: str
    options: tuple[str, ...] = ()
    secret: str = ""
    """It asks for a secret: the name under which the interface stores what the user types.

    The answer is `stored` or `declined`.
    """


class QuestionAnswered(EventBase, tag="question_answered"):
    question_id: str
    answer: str
    by: Literal["user", "nobody", "cancelled"] = "user"


ApprovalEvent = ApprovalAsked | ApprovalAnswered | ApprovalPicked | QuestionAsked | QuestionAnswered
