"""What was changed in the sessions of a workspace, what going back would mean, and what all of it takes."""

from collections.abc import Sequence
from typing import NamedTuple

from handrail.changes.diff import Diff, diff
from handrail.changes.journal import steps_of
from handrail.changes.rollback import FilePlan, Plan
from handrail.engine.rewinding import plan_of
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.events import ChangePrepared, Redone, Rewound
from handrail.protocol.values import FileChange
from handrail.sessions.changes import Change, changes_of, find_change, message_of_turn
from handrail.sessions.handle import Session
from handrail.sessions.storage_use import StorageUse, prune, storage_use
from handrail.storage.blobs import Room
from handrail.storage.log import Log
from handrail.workspace.files import Workspace
from handrail.workspace.text import readable

ALL_LINES = 1_000_000
"""Who asks for a diff gets it whole."""


class ShownFile(NamedTuple):
    file: FileChange
    diff: Diff | None
    """None where a version is not kept any more."""


class ShownChange(NamedTuple):
    change: Change
    files: tuple[ShownFile, ...]


class GoingBack(NamedTuple):
    """What a rewind or a redo comes to."""

    plan: Plan
    event: Rewound | Redone
    """As it would be told."""


class NetFile(NamedTuple):
    """What is left in a file of all that some change sets did to it."""

    path: str
    diff: Diff | None
    """None where what was before is not kept."""
    why: str = ""
    """Where it cannot be told from what somebody else did, which is in the diff then, too."""


class History:
    """Reads only; a rewind itself is a command for the session's holder."""

    def __init__(self, log: Log, workspace: Workspace, limit: int) -> None:
        self._log = log
        self._workspace = workspace
        self._limit = limit

    def changes(self, session_id: str) -> list[Change]:
        """All change sets of a session, oldest first, each with what has become of it."""
        return changes_of(self._log, session_id)

    def find(self, session_id: str, change: str = "") -> Change:
        """A change set, named by its number, its id or the end of that; the last when empty."""
        return find_change(self.changes(session_id), change)

    def before_turn(self, session_id: str, number: int) -> Rewind:
        """The rewind to before a turn, of files and conversation."""
        return Rewind(to=message_of_turn(self._log, session_id, number), conversation=True)

    def show(self, session_id: str, change: str = "") -> ShownChange:
        """The same with its diffs."""
        found = self.find(session_id, change)
        return ShownChange(found, tuple(ShownFile(file, self._diff(file)) for file in found.prepared.files))

    def plan(self, session_id: str, command: Rewind | Redo) -> Plan:
        """What a rewind or a redo would do to files now; nothing is done."""
        return self.going_back(session_id, command).plan

    def going_back(self, session_id: str, command: Rewind | Redo) -> GoingBack:
        """The same, with how it would be told; nothing is done."""
        return GoingBack(*plan_of(Session(self._log, session_id).load(), self._workspace, command))

    def net(self, session_id: str, since: str) -> list[NetFile]:
        """What is left of a session's changes from a change set on, without what others wrote."""
        changes = self.changes(session_id)
        first = find_change(changes, since).number
        plan = self.plan(session_id, Rewind(to=since))
        later = [change.prepared for change in changes[first - 1 :] if change.in_place]
        return [self._net(file, later) for file in plan.files]

    def storage(self) -> StorageUse:
        return storage_use(self._log, self._limit)

    def prune(self) -> Room:
        """Drop the oldest contents that nothing needs, until what is kept is within the limit."""
        return prune(self._log, self._limit)

    def _diff(self, file: FileChange) -> Diff | None:
        old, new = (self._log.blob(each) if each else None for each in (file.old_sha256, file.new_sha256))
        if (file.old_sha256 and old is None) or (file.new_sha256 and new is None):
            return None
        return _compared(file.destination or file.path, old, new)

    def _net(self, file: FilePlan, changes: Sequence[ChangePrepared]) -> NetFile:
        if file.kind in ("restore", "merge"):
            return NetFile(file.path, _compared(file.path, file.then, file.now.data))
        steps = [step for change in changes for step in steps_of(change) if step.path == file.path]
        before = self._log.blob(steps[0].old) if steps[0].old else None
        if file.kind == "lost" or (steps[0].old and before is None):
            return NetFile(file.path, None, file.why)
        return NetFile(file.path, _compared(file.path, before, file.now.data), file.why)


def _compared(path: str, old: bytes | None, new: bytes | None) -> Diff:
    if b"\0" in (old or b"") or b"\0" in (new or b""):
        return Diff(f"Binary files {path} differ", 0, 0)
    before, after = (None if data is None else readable(data) for data in (old, new))
    return diff(path, before, after, shown_lines=ALL_LINES)
