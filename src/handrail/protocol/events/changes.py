"""Events of changing files: change sets, rewinds, commits to git."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import FileChange, FileConflict, FolderMode, TraceMark


class ChangePrepared(EventBase, tag="change_prepared"):
    """Committed, with old and new contents as blobs, before any file is touched."""

    turn_id: str
    change_id: str
    call_id: str
    files: tuple[FileChange, ...]
    by: Literal["agent", "user", "rollback", "command"] = "agent"
    takes_back: tuple[str, ...] = ()
    """Ids of the change sets that this one undoes."""
    folders: tuple[str, ...] = ()
    """Created for the new files, outermost first."""
    emptied: tuple[str, ...] = ()
    """Removed if they are empty afterwards, innermost first."""
    folder_modes: tuple[FolderMode, ...] = ()
    """Folders that were made, removed or got other permissions, outermost first."""
    model: str = ""
    cost_usd: float | None = None
    intent: str = ""
    """Its purpose, as text."""
    intent_id: str = ""
    """The active intent; for an undo, the intent of the undone change."""
    mutation_class: str = ""
    mutation_problem: str = ""
    """For a declared refactor: why it does not count as one, or was not checked."""
    todos: tuple[str, ...] = ()
    request_id: str = ""
    """The model's or the user's request that led to it."""
    trace: TraceMark | None = None
    """If the workspace has a trace: what this change set adds to it when applied."""
    subagent: str = ""
    """The sub-agent that made it; empty: the conversation itself."""
    unlisted: int = 0
    """More files that a command changed, too many to record: they cannot be restored."""


class ChangeApplied(EventBase, tag="change_applied"):
    change_id: str


class ChangeAbandoned(EventBase, tag="change_abandoned"):
    """The files are as they were, or as somebody else left them."""

    change_id: str
    why: str


class CopyKept(EventBase, tag="copy_kept"):
    """Somebody wrote to a file while it was being changed: their version is in a copy beside it."""

    change_id: str
    path: str
    copy_path: str


class Rewound(EventBase, tag="rewound"):
    """Change sets were undone, or messages set aside, or both. A later `Redone` may name it."""

    request_id: str
    change_id: str = ""
    """The change set that undid the others; empty if no file had to change."""
    keep: int | None = None
    """The model sees the conversation up to this event; None: all of it."""
    turns: int = 0
    """How many turns that leaves."""
    detail: str = ""
    """For the user: what was not undone, and why."""


class Redone(EventBase, tag="redone"):
    """A rewind was undone."""

    request_id: str
    rewind_id: str
    """The `request_id` of the rewind."""
    change_id: str = ""
    detail: str = ""
    conversation: bool | None = None
    """Whether the messages that were set aside came back; None in older logs."""


class RewindRefused(EventBase, tag="rewind_refused"):
    """Nothing was undone."""

    request_id: str
    why: str
    conflicts: tuple[FileConflict, ...] = ()


class Committed(EventBase, tag="committed", kw_only=True):
    """Change sets of this session are in git."""

    request_id: str
    commit: str
    branch: str = ""
    """Empty if no branch was checked out."""
    subject: str
    """The first line of its message."""
    change_ids: tuple[str, ...]
    upto: int
    """Change sets applied up to this event of the session are included."""
    files: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """For the user: what is not in it, or may surprise them."""


class CommitRefused(EventBase, tag="commit_refused"):
    """Nothing was committed."""

    request_id: str
    why: str
    """Empty: there was nothing to commit."""


RewindEvent = Rewound | Redone | RewindRefused
CommitEvent = Committed | CommitRefused
ChangeEvent = RewindEvent | CommitEvent | ChangePrepared | ChangeApplied | ChangeAbandoned | CopyKept
