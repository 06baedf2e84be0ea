"""The task list of a workspace: computed from events, changed by operations, undone change by change."""

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import decode
from msgspec.structs import replace

from handrail.protocol.errors import (
    ChangedSince,
    IdempotencyConflict,
    StorageProblem,
    UsageProblem,
    WrongSequence,
)
from handrail.protocol.events import Recorded, TasksChanged, TasksUndone
from handrail.protocol.ids import WORKSPACE_STREAM, new_id
from handrail.protocol.task import OperationReport, OperationResult, Task, TaskChange
from handrail.protocol.values import TaskFilter, to_json
from handrail.sessions.session import event_from_row
from handrail.sessions.workspace_events import APPEND_TRIES, append_to_workspace
from handrail.storage.event_log import Log, Snapshot
from handrail.tasks.evaluate import Evaluation, evaluate
from handrail.tasks.normalise import Clock
from handrail.tasks.search import MAX_FOCUSED, Focus, focused, search, selected

KEY_SECONDS = 600.0
"""How long a key that comes again means the same request."""
MAX_UNDO, MAX_KEYS, MAX_DRYRUN_IDS = 1_000, 1_000, 10
SNAPSHOT_VERSION, SNAPSHOT_EVERY = 1, 200


class AppliedKey(Struct):
    """An idempotency key, and what was applied with it."""

    body: str
    at: float
    seq: int


class TaskListState(Struct):
    """The list after the events up to `seq`."""

    seq: int = 0
    tasks: dict[str, Task] = {}
    last_number: int = 0
    """The highest number that a task ever had: a number is never used again."""
    undoable: list[tuple[str, int]] = []
    """{change, its sequence number}, latest last"""
    keys: dict[str, AppliedKey] = {}
    """Idempotency keys, latest last."""

    def apply(self, recorded: Recorded) -> None:
        self.seq = recorded.seq
        match recorded.event:
            case TasksChanged() as event:
                self._change(event.changes)
                if event.changes:
                    self.undoable = [*self.undoable, (event.change_id, recorded.seq)][-MAX_UNDO:]
                if event.key:
                    self.keys.pop(event.key, None)
                    self.keys[event.key] = AppliedKey(event.body, recorded.at, recorded.seq)
                    while len(self.keys) > MAX_KEYS:
                        del self.keys[next(iter(self.keys))]
            case TasksUndone() as event:
                self._change(event.changes)
                self.undoable = [each for each in self.undoable if each[0] != event.change_id]

    def _change(self, changes: Sequence[TaskChange]) -> None:
        for change in changes:
            self.last_number = max(self.last_number, int(change.id))
            if change.after is None:
                self.tasks.pop(change.id, None)
            else:
                self.tasks[change.id] = change.after


class Applied(NamedTuple):
    report: OperationReport
    change_id: str
    """Empty: nothing was changed."""
    repeated: bool = False
    """The key was known: what it did the first time is returned."""


class Undone(NamedTuple):
    change_id: str
    changes: tuple[TaskChange, ...]


def target_digest(result: OperationResult) -> str:
    """A hash of what an operation changes, apart from the number of a new task."""
    created = result.op.get("op") == "create"
    target = (result.valid, result.before, result.count, () if created else result.ids)
    return hashlib.sha256(to_json(target).encode()).hexdigest()[:32]


class TaskList:
    """The task list of one workspace. Any number of processes may change it; changes never overlap."""

    def __init__(self, log: Log, zone: ZoneInfo, now: Callable[[], float] = time.time) -> None:
        self._log = log
        self._zone = zone
        self._now = now
        self._state = TaskListState()
        self._snapshot_seq = 0

    @property
    def clock(self) -> Clock:
        return Clock(datetime.fromtimestamp(self._now(), UTC).astimezone(self._zone).date(), self._zone)

    # Reading

    def load(self) -> TaskListState:
        """The list as it is now."""
        if not self._state.seq:
            self._load_snapshot()
        for row in self._log.read(WORKSPACE_STREAM, after=self._state.seq):
            self._state.apply(event_from_row(row))
        return self._state

    def all(self) -> list[Task]:
        """All tasks, oldest first."""
        return sorted(self.load().tasks.values(), key=lambda task: task.number)

    def get(self, task_id: str) -> Task | None:
        return self.load().tasks.get(task_id)

    def find(self, where: TaskFilter) -> list[Task]:
        return selected(self.load().tasks, where, self.clock.today)

    def search(self, text: str) -> list[Task]:
        return search(self.load().tasks.values(), text)

    def last_change(self) -> TasksChanged | None:
        """The change that `undo` would undo."""
        undoable = self.load().undoable
        return self._event(undoable[-1][1]) if undoable else None

    def focused(
        self, where: TaskFilter | None = None, *, message: str = "", most: int = MAX_FOCUSED
    ) -> Focus:
        """The tasks that a model is shown: those of the filter, else that the message names, then others."""
        return focused(self.load().tasks, self.clock.today, where, message=message, most=most)

    def as_bytes(self) -> bytes:
        """The list as one text that is the same for the same tasks."""
        return to_json(self.all()).encode()

    # Changing

    def preview(self, operations: Sequence[object]) -> OperationReport:
        """What applying the operations now would do, with all ids; nothing is changed."""
        return self._evaluate(operations).report

    def dry_run(self, operations: Sequence[object]) -> OperationReport:
        """The same with a few ids of each operation."""
        report = self.preview(operations)
        short = tuple(replace(each, ids=each.ids[:MAX_DRYRUN_IDS]) for each in report.results)
        return replace(report, results=short)

    def apply(
        self,
        operations: Sequence[object],
        *,
        key: str = "",
        key_seconds: float = KEY_SECONDS,
        by: Literal["user", "assistant"] = "user",
        session_id: str = "",
        seen: Sequence[str] = (),
    ) -> Applied:
        """Apply the valid operations, in one event; with a key that was used before, nothing is done again.

        `seen` has the digest of what the user saw of each operation before they said yes; empty: nothing.
        Raises ChangedSince where the list has changed so that something else would be done,
        IdempotencyConflict where the key came with other operations.
        """
        body = hashlib.sha256(to_json(operations).encode()).hexdigest() if key else ""
        for left in reversed(range(APPEND_TRIES)):
            state = self.load()
            if key and (used := state.keys.get(key)) and self._now() - used.at < key_seconds:
                return self._applied_before(key, used, body)
            found = self._evaluate(operations)
            if any(
                old and old != target_digest(new)
                for old, new in zip(seen, found.report.results, strict=False)
            ):
                raise ChangedSince("The task list has changed since you were asked. Nothing was applied.")
            if not (found.changes or key):
                return Applied(found.report, "")
            event = TasksChanged(
                change_id=new_id("tc"),
                changes=found.changes,
                report=found.report,
                key=key,
                body=body,
                by=by,
                session_id=session_id,
            )
            try:
                append_to_workspace(self._log, event, after=state.seq)
            except WrongSequence:  # somebody else was first: what this does may be different now
                if not left:
                    raise
            else:
                self._save_snapshot()
                return Applied(found.report, event.change_id if found.changes else "")
        raise AssertionError("the last try returns or raises")

    def undo(self, change_id: str = "") -> Undone:
        """Undo the last change that is not undone; its tasks are as they were before it.

        Raises UsageProblem where there is none, or where `change_id` is not the last one.
        """
        for left in reversed(range(APPEND_TRIES)):
            state = self.load()
            if not state.undoable:
                raise UsageProblem("There is no change of the task list to undo.")
            last, seq = state.undoable[-1]
            if change_id not in ("", last):
                raise UsageProblem("The task list was changed again after that. Undo the later change first.")
            changes = tuple(
                TaskChange(each.id, before=each.after, after=each.before) for each in self._event(seq).changes
            )
            try:
                append_to_workspace(self._log, TasksUndone(change_id=last, changes=changes), after=state.seq)
            except WrongSequence:
                if not left:
                    raise
            else:
                return Undone(last, changes)
        raise AssertionError("the last try returns or raises")

    def _evaluate(self, operations: Sequence[object]) -> Evaluation:
        state = self.load()
        return evaluate(state.tasks, state.last_number + 1, operations, self.clock)

    def _applied_before(self, key: str, used: AppliedKey, body: str) -> Applied:
        if used.body != body:
            raise IdempotencyConflict(
                f"The key {key!r} was already used for other operations. Use a new key for these."
            )
        event = self._event(used.seq)
        return Applied(event.report, event.change_id if event.changes else "", repeated=True)

    def _event(self, seq: int) -> TasksChanged:
        (row,) = self._log.read(WORKSPACE_STREAM, after=seq - 1, limit=1)
        event = event_from_row(row).event
        if not isinstance(event, TasksChanged):
            raise UsageProblem("That change of the task list is no longer stored. It cannot be undone.")
        return event

    # The snapshot saves reading all events

    def _load_snapshot(self) -> None:
        snapshot = self._log.snapshot(WORKSPACE_STREAM, SNAPSHOT_VERSION)
        if snapshot is None:
            return
        try:
            self._state = decode(snapshot.data, type=TaskListState)
        except (DecodeError, ValidationError):
            return  # of another version: the events have it all
        self._snapshot_seq = self._state.seq

    def _save_snapshot(self) -> None:
        """Save the state now and then, so that the next start is quick."""
        state = self.load()
        head = self._log.head(WORKSPACE_STREAM)
        if head and head.seq == state.seq and state.seq - self._snapshot_seq >= SNAPSHOT_EVERY:
            snapshot = Snapshot(SNAPSHOT_VERSION, state.seq, head.hash, to_json(state))
            with suppress(StorageProblem):  # the change itself is committed
                self._log.save_snapshot(WORKSPACE_STREAM, snapshot)
                self._snapshot_seq = state.seq
