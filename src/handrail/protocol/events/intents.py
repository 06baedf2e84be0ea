"""Events of intents: selected, edited, overlaps settled."""

from typing import Literal

from handrail.protocol.events.base import EventBase


class IntentSelected(EventBase, tag="intent_selected"):
    """From now on the session works for this intent."""

    intent_id: str
    """Empty: for none."""
    text: str = ""
    sha256: str = ""
    """Hash of the text: its version."""
    warnings: tuple[str, ...] = ()
    """For user and model: dependencies that are not done, intents that own the same files."""
    by: Literal["agent", "user"] = "agent"


class IntentEdited(EventBase, tag="intent_edited"):
    """An intent in the file is edited; appended to the workspace's stream before the file changes."""

    intent_id: str
    old: str
    """Its text before; empty if it is new."""
    new: str
    why: str = ""
    by: Literal["agent", "user"] = "user"
    session_id: str = ""


class OverlapSettled(EventBase, tag="overlap_settled"):
    """The user's decision about two intents that own the same files; in the workspace's stream."""

    intents: tuple[str, str]
    choice: Literal["narrowed", "ordered", "accepted"]
    scopes: str
    """Hash of both scopes: the decision is for exactly these."""


IntentEvent = IntentSelected | IntentEdited | OverlapSettled
