"""A change set: edits that are applied all or none, under one id, with who wanted them and why."""

import hashlib
from typing import Literal

from handrail.changes.diff import Diff
from handrail.protocol.record import Record

Op = Literal["create", "update", "delete", "move"]
By = Literal["agent", "user", "rollback", "command"]
NO_DIFF = Diff("", 0, 0)


class FileEdit(Record):
    """One file's old and new content. Nothing has happened yet."""

    path: str
    op: Op
    old: bytes | None
    """What the file must hold now; None where there must be no file."""
    new: bytes | None
    """What is to be at `path`, or at `destination` of a move; None for a deletion."""
    diff: Diff = NO_DIFF
    destination: str = ""
    """Where a move leads; nothing may be there."""
    mode: int | None = None
    """Permissions of the new file; None: those of the old one, or the usual ones for a new file."""
    matched: str = ""
    """The step of tolerance that found the place, such as `indentation`; empty: exactly as it was written."""

    @property
    def old_sha256(self) -> str:
        return sha256(self.old)

    @property
    def new_sha256(self) -> str:
        return sha256(self.new)


class Origin(Record):
    """Whose wish a change set is, and what it belongs to."""

    turn_id: str = ""
    call_id: str = ""
    by: By = "agent"
    model: str = ""
    cost_usd: float | None = None
    intent: str = ""
    """What it is for, in words."""
    intent_id: str = ""
    """Empty: the one that is active in the session."""
    mutation_class: str = ""
    mutation_problem: str = ""
    """Why a declared refactor counts as none, or was not checked."""
    request_id: str = ""
    """Empty: the last request to the model of the turn."""
    todos: tuple[str, ...] = ()
    """Todos that applying completes."""
    takes_back: tuple[str, ...] = ()
    """Ids of the change sets that this one takes back."""


class ChangeSet(Record):
    edits: tuple[FileEdit, ...]
    origin: Origin = Origin()
    hard_links_agreed: bool = False
    """The user knows that a file has several names, of which one will get the new content."""

    @property
    def added(self) -> int:
        return sum(edit.diff.added for edit in self.edits)

    @property
    def removed(self) -> int:
        return sum(edit.diff.removed for edit in self.edits)


def sha256(data: bytes | None) -> str:
    """The hash of a content; empty where there is no file."""
    return hashlib.sha256(data).hexdigest() if data is not None else ""
