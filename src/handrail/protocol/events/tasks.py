"""Events of the user's task list, in the workspace's stream."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.task import OperationReport, TaskChange


class TasksChanged(EventBase, tag="tasks_changed"):
    """Operations were applied to the task list, all in this one event."""

    change_id: str
    changes: tuple[TaskChange, ...]
    """Each task once, with its first state before and its last one after."""
    report: OperationReport
    key: str = ""
    """The caller's idempotency key."""
    body: str = ""
    """Hash of the operations that came with the key."""
    by: Literal["user", "assistant"] = "user"
    """`assistant`: a model proposed the operations, and the user agreed."""
    session_id: str = ""


class TasksUndone(EventBase, tag="tasks_undone"):
    """A change of the task list was undone: its tasks are as they were before it."""

    change_id: str
    changes: tuple[TaskChange, ...]
    """Of the undo itself: `before` is what the undone change had left."""


TaskListEvent = TasksChanged | TasksUndone
