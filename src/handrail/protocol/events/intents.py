"""Events of intents: which one a session works at, and how they came to be as they are."""

from typing import Literal

from handrail.protocol.events.base import EventBase


class IntentSelected(EventBase):
    """What the session does from now on belongs to this intent."""

    type: Literal["intent_selected"] = "intent_selected"
    intent_id: str
    """Empty: to none."""
    text: str = ""
    """The intent as it stood in its file."""
    sha256: str = ""
    """Of the text: its version."""
    warnings: tuple[str, ...] = ()
    """For user and model: dependencies that are not done, others who own the same files."""
    by: Literal["agent", "user"] = "agent"


class IntentEdited(EventBase):
    """An intent in its file became another; goes into the workspace's stream before the file changes."""

    type: Literal["intent_edited"] = "intent_edited"
    intent_id: str
    old: str
    """Its text before; empty where there was none."""
    new: str
    why: str = ""
    by: Literal["agent", "user"] = "user"
    session_id: str = ""
    """Where it was done in a session."""


class OverlapSettled(EventBase):
    """What the user says about two intents that own the same files; goes into the workspace's stream."""

    type: Literal["overlap_settled"] = "overlap_settled"
    intents: tuple[str, str]
    choice: Literal["narrowed", "ordered", "accepted"]
    scopes: str
    """Hash of both scopes: with other scopes it is another matter."""
