"""A change set: edits applied all or none, with who wanted them and why."""

import hashlib
from typing import Literal

from handrail.changes.diff import Diff
from handrail.protocol.values import FolderMode, Value

Op = Literal["create", "update", "delete", "move"]
By = Literal["agent", "user", "rollback", "command"]
NO_DIFF = Diff("", 0, 0)


class FileEdit(Value):
    path: str
    op: Op
    old: bytes | None
    """What the file must hold now; None where there must be no file."""
    new: bytes | None
    """The new content of `path`, or of `destination` for a move; None for a deletion."""
    diff: Diff = NO_DIFF
    destination: str = ""
    """The new path of a moved file, where no file may be."""
    mode: int | None = None
    """Permissions of the new file; None: those of the old one, or the usual ones for a new file."""
    matched: str = ""
    """The step of tolerance that found the place, such as `indentation`; empty: an exact match."""
    ignored: bool = False
    old_unread: str = ""
    """In place of the hash of `old`, where that is too large to be read, or no file."""
    replaced: int = 0
    """How many places edits with `replace_all` changed."""

    @property
    def old_sha256(self) -> str:
        return self.old_unread or sha256(self.old)

    @property
    def new_sha256(self) -> str:
        return sha256(self.new)


class Origin(Value):
    turn_id: str = ""
    call_id: str = ""
    by: By = "agent"
    model: str = ""
    cost_usd: float | None = None
    intent: str = ""
    """Its purpose, in words."""
    intent_id: str = ""
    """Empty: the one that is active in the session."""
    mutation_class: str = ""
    mutation_problem: str = ""
    request_id: str = ""
    """Empty: the last request to the model of the turn."""
    todos: tuple[str, ...] = ()
    """Todos that applying completes."""
    takes_back: tuple[str, ...] = ()
    """Ids of the change sets that this one undoes."""


class ChangeSet(Value):
    edits: tuple[FileEdit, ...]
    origin: Origin = Origin()
    hard_links_agreed: bool = False
    folder_modes: tuple[FolderMode, ...] = ()
    """Folders to make, to remove if they are empty, and to give other permissions; outermost first."""

    @property
    def added(self) -> int:
        return sum(edit.diff.added for edit in self.edits)

    @property
    def removed(self) -> int:
        return sum(edit.diff.removed for edit in self.edits)


def sha256(data: bytes | None) -> str:
    """The hash of a content; empty where there is no file."""
    return hashlib.sha256(data).hexdigest() if data is not None else ""
