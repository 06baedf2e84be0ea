"""What was changed in the sessions of a workspace, what going back would mean, and what all of it takes."""

from typing import NamedTuple

from handrail.changes.diff import Diff, diff
from handrail.changes.rollback import Plan
from handrail.engine.rewinding import plan_of
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.values import FileChange
from handrail.sessions.changes import Change, changes_of, find_change
from handrail.sessions.handle import Session
from handrail.sessions.storage_use import StorageUse, prune, storage_use
from handrail.storage.blobs import Room
from handrail.storage.log import Log
from handrail.workspace.files import Workspace
from handrail.workspace.text import readable


class ShownFile(NamedTuple):
    file: FileChange
    diff: Diff | None
    """None where a version is not kept any more."""


class ShownChange(NamedTuple):
    change: Change
    files: tuple[ShownFile, ...]


class History:
    """Reads only; a rewind itself is a command for the session's holder."""

    def __init__(self, log: Log, workspace: Workspace, limit: int) -> None:
        self._log = log
        self._workspace = workspace
        self._limit = limit

    def changes(self, session_id: str) -> list[Change]:
        """All change sets of a session, oldest first, each with what has become of it."""
        return changes_of(self._log, session_id)

    def show(self, session_id: str, change: str = "") -> ShownChange:
        """A change set, named by its id or the end of it, the last when empty; with its diffs."""
        found = find_change(self.changes(session_id), change)
        return ShownChange(found, tuple(ShownFile(file, self._diff(file)) for file in found.prepared.files))

    def plan(self, session_id: str, command: Rewind | Redo) -> Plan:
        """What a rewind or a redo would do to files now; nothing is done."""
        plan, _ = plan_of(Session(self._log, session_id).load(), self._workspace, command)
        return plan

    def storage(self) -> StorageUse:
        return storage_use(self._log, self._limit)

    def prune(self) -> Room:
        """Drop the oldest contents that nothing needs, until what is kept is within the limit."""
        return prune(self._log, self._limit)

    def _diff(self, file: FileChange) -> Diff | None:
        versions = [self._log.blob(each) if each else b"" for each in (file.old_sha256, file.new_sha256)]
        if None in versions:
            return None
        old, new = (readable(data) if data is not None else None for data in versions)
        return diff(
            file.destination or file.path,
            old if file.old_sha256 else None,
            new if file.new_sha256 else None,
        )
