"""Tasks of the user's list, the operations that change it, and what an operation did."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from handrail.protocol.values import Value

MAX_TITLE, MAX_NOTES, MAX_EVERY_DAYS = 300, 20_000, 3_650
Day = Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}\Z")]
"""A calendar date in the user's time zone."""
DayOrNone = Annotated[str, Meta(pattern=r"^(\d{4}-\d{2}-\d{2})?\Z")]
TimeOrNone = Annotated[str, Meta(pattern=r"^(([01]\d|2[0-3]):[0-5]\d)?\Z")]
Priority = Literal["", "low", "medium", "high"]
RepeatKind = Literal["none", "daily", "weekdays", "weekly", "monthly", "every_n_days"]
TaskOp = Literal[
    "create",
    "update",
    "delete",
    "complete",
    "complete_occurrence",
    "bulk_update",
    "bulk_complete",
    "bulk_delete",
]
TaskKind = Literal["task", "habit", "goal", "event"]


class Recurrence(Value):
    """How a task repeats, counted from its scheduled date."""

    type: RepeatKind = "none"
    days: Annotated[int, Meta(ge=1, le=MAX_EVERY_DAYS)] = 1
    """For `every_n_days`."""
    until: DayOrNone = ""
    """The last day on which it may occur."""


NO_RECURRENCE = Recurrence()


class Task(Value):
    id: Annotated[str, Meta(pattern=r"^[1-9]\d*\Z")]
    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)]
    notes: Annotated[str, Meta(max_length=MAX_NOTES)] = ""
    scheduled_for: DayOrNone = ""
    time: TimeOrNone = ""
    """Time of day in the user's time zone."""
    priority: Priority = ""
    completed: bool = False
    recurrence: Recurrence = NO_RECURRENCE
    completed_occurrences: tuple[Day, ...] = ()

    @property
    def repeats(self) -> bool:
        return self.recurrence.type != "none"

    @property
    def number(self) -> int:
        return int(self.id)


class TaskChange(Value):
    """A task before and after; None: there is none."""

    id: str
    before: Task | None
    after: Task | None


class OperationResult(Value):
    """What one operation does to the list, or why it cannot be done."""

    op: dict[str, Any]
    """The operation in its normal form."""
    valid: bool
    errors: tuple[str, ...] = ()
    """What is wrong, each with what to do."""
    before: Task | None = None
    after: Task | None = None
    """Of an operation on one task."""
    count: int = 0
    """Tasks that it changes."""
    ids: tuple[str, ...] = ()


class OperationSummary(Value):
    """How many tasks were created, updated, deleted and completed."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    completed: int = 0


class OperationReport(Value):
    """What a list of operations would do, or did."""

    results: tuple[OperationResult, ...] = ()
    summary: OperationSummary = OperationSummary()
    warnings: tuple[str, ...] = ()
    """Each is a reason to ask the user a second time."""
