"""Events about the session itself."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import Mode, Role


class SessionStarted(EventBase):
    type: Literal["session_started"] = "session_started"
    session_id: str
    workspace: str
    """Absolute path of the folder worked on."""
    version: str
    """Handrail's version that made the session."""
    mode: Mode = "ask"
    forked_from: str = ""
    """Id of the session whose events up to `forked_at` come before this one's own."""
    forked_at: int = 0


class SessionCopied(EventBase):
    """What comes before was copied from another session: permissions given there do not count here."""

    type: Literal["session_copied"] = "session_copied"
    how: Literal["fork", "import"]


class SessionRenamed(EventBase):
    type: Literal["session_renamed"] = "session_renamed"
    title: str


class SessionDeleted(EventBase):
    type: Literal["session_deleted"] = "session_deleted"


class SessionRestored(EventBase):
    type: Literal["session_restored"] = "session_restored"


class ModeSet(EventBase):
    type: Literal["mode_set"] = "mode_set"
    mode: Mode


class ModelSet(EventBase):
    type: Literal["model_set"] = "model_set"
    model: str
    """`connection/name`."""
    role: Role = "main"
    why: str = ""
    """Where the choice comes from, in words for the user."""
