"""Events of changing the user's files."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import FileChange


class ChangePrepared(EventBase):
    """Committed, with both contents in blobs, before any file is touched."""

    type: Literal["change_prepared"] = "change_prepared"
    turn_id: str
    change_id: str
    call_id: str
    files: tuple[FileChange, ...]


class ChangeApplied(EventBase):
    type: Literal["change_applied"] = "change_applied"
    change_id: str


class ChangeAbandoned(EventBase):
    """The files are as they were, or as somebody else left them."""

    type: Literal["change_abandoned"] = "change_abandoned"
    change_id: str
    why: str
