"""Events of changing the user's files."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import FileChange, FileConflict, TraceMark


class ChangePrepared(EventBase):
    """Committed, with both contents in blobs, before any file is touched."""

    type: Literal["change_prepared"] = "change_prepared"
    turn_id: str
    change_id: str
    call_id: str
    files: tuple[FileChange, ...]
    by: Literal["agent", "user", "rollback", "command"] = "agent"
    takes_back: tuple[str, ...] = ()
    """Ids of the change sets that this one takes back."""
    folders: tuple[str, ...] = ()
    """Made for the new files, outermost first."""
    emptied: tuple[str, ...] = ()
    """Removed again where nothing is left in them, innermost first."""
    model: str = ""
    cost_usd: float | None = None
    intent: str = ""
    """What it was for, in words."""
    intent_id: str = ""
    """The intent that was active; of what was taken back, the one that it belonged to."""
    mutation_class: str = ""
    mutation_problem: str = ""
    """Of what was said to keep behaviour: why it does not count as that, or was not checked."""
    todos: tuple[str, ...] = ()
    """Todos that applying completes."""
    request_id: str = ""
    """The request to the model, or of the user, that led to it."""
    trace: TraceMark | None = None
    """Where the workspace has a trace: what this change set writes to it once it is applied."""
    unlisted: int = 0
    """Files that a command changed besides, too many to be recorded: nothing can bring them back."""


class ChangeApplied(EventBase):
    type: Literal["change_applied"] = "change_applied"
    change_id: str


class ChangeAbandoned(EventBase):
    """The files are as they were, or as somebody else left them."""

    type: Literal["change_abandoned"] = "change_abandoned"
    change_id: str
    why: str


class CopyKept(EventBase):
    """Somebody wrote to a file at the very moment it was changed: what they wrote is in a copy beside it."""

    type: Literal["copy_kept"] = "copy_kept"
    change_id: str
    path: str
    copy_path: str


class Rewound(EventBase):
    """Change sets were taken back, or messages set aside, or both. A later `Redone` may name it."""

    type: Literal["rewound"] = "rewound"
    request_id: str
    change_id: str = ""
    """The change set that took the others back; empty where no file had to change."""
    keep: int | None = None
    """The model is shown the conversation up to this event and nothing after it; None: all of it."""
    turns: int = 0
    """How many turns it is then shown."""
    detail: str = ""
    """For the user: what was not taken back, and why."""


class Redone(EventBase):
    """A rewind was itself taken back."""

    type: Literal["redone"] = "redone"
    request_id: str
    rewind_id: str
    """The `request_id` of the rewind."""
    change_id: str = ""
    detail: str = ""
    conversation: bool | None = None
    """Whether what was set aside of the conversation came back; None in older logs."""


class RewindRefused(EventBase):
    """Nothing was taken back."""

    type: Literal["rewind_refused"] = "rewind_refused"
    request_id: str
    why: str
    conflicts: tuple[FileConflict, ...] = ()
