"""What operations do to a task list: the same function answers a dry run and is applied."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from handrail.protocol.task import (
    MAX_NOTES,
    MAX_TITLE,
    NO_RECURRENCE,
    OperationReport,
    OperationResult,
    OperationSummary,
    Task,
    TaskChange,
)
from handrail.protocol.values import TaskFilter
from handrail.tasks.normalise import OPS, Clock, Operation, normalise
from handrail.tasks.recurrence import next_occurrence, occurs_on, open_occurrence
from handrail.tasks.search import search, selected

MOST_DELETED, MOST_UPDATED = 20, 50
"""More than this, and the user is asked a second time."""
MAX_NAMED = 3
Counted = Literal["created", "updated", "deleted", "completed"]
COUNTED: Mapping[str, Counted] = {
    "create": "created",
    "update": "updated",
    "bulk_update": "updated",
    "delete": "deleted",
    "bulk_delete": "deleted",
    "complete": "completed",
    "bulk_complete": "completed",
    "complete_occurrence": "completed",
}
Tasks = Mapping[str, Task]


class Evaluation(NamedTuple):
    """What the operations do, one after the other; an invalid one does nothing."""

    report: OperationReport
    changes: tuple[TaskChange, ...]
    tasks: Tasks


class Invalid(Exception):
    """An operation that cannot be done; each reason says what to do."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


def evaluate(tasks: Tasks, next_number: int, operations: Sequence[object], clock: Clock) -> Evaluation:
    now = dict(tasks)
    results: list[OperationResult] = []
    counts: dict[str, int] = dict.fromkeys(OperationSummary.__struct_fields__, 0)
    touched: dict[str, None] = {}
    for raw in operations:
        operation = normalise(raw, now, clock)
        try:
            changes = _changes(now, operation, next_number, clock)
        except Invalid as invalid:
            results.append(OperationResult(operation.as_dict(), valid=False, errors=invalid.reasons))
            continue
        for change in changes:
            touched[change.id] = None
            if change.after is None:
                del now[change.id]
            else:
                now[change.id] = change.after
        next_number += operation.op == "create"
        if not (operation.op == "complete_occurrence" and not operation.completed):
            counts[COUNTED[operation.op]] += len(changes)
        else:
            counts["updated"] += len(changes)
        results.append(_result(operation, changes))
    summary = OperationSummary(**counts)
    merged = (TaskChange(each, tasks.get(each), now.get(each)) for each in touched)
    return Evaluation(
        OperationReport(tuple(results), summary, tuple(_warnings(summary))),
        tuple(each for each in merged if each.before != each.after),
        now,
    )


def _result(operation: Operation, changes: Sequence[TaskChange]) -> OperationResult:
    bulk = operation.op.startswith("bulk_")
    return OperationResult(
        operation.as_dict(),
        valid=True,
        before=None if bulk else changes[0].before,
        after=None if bulk else changes[0].after,
        count=len(changes),
        ids=tuple(each.id for each in changes),
    )


def _warnings(summary: OperationSummary) -> list[str]:
    found = []
    if summary.deleted > MOST_DELETED:
        found.append(f"This deletes {summary.deleted:,} tasks.")
    changed = summary.updated + summary.completed
    if changed > MOST_UPDATED:
        found.append(f"This changes {changed:,} tasks.")
    return found


def _changes(tasks: Tasks, operation: Operation, next_number: int, clock: Clock) -> list[TaskChange]:
    """What the operation does; raises Invalid."""
    if operation.op not in OPS:
        raise Invalid(*(operation.errors or (f"Say what to do: one of {', '.join(OPS)}.",)))
    if operation.errors:
        raise Invalid(*operation.errors)
    if operation.op == "create":
        return [_created(operation.fields, str(next_number), clock)]
    if operation.op.startswith("bulk_"):
        return _bulk_changes(tasks, operation, clock)
    task = tasks.get(operation.id)
    if task is None:
        raise Invalid(_unknown(tasks, operation.id))
    return [TaskChange(task.id, task, _after(task, operation, clock))]


def _unknown(tasks: Tasks, given: str) -> str:
    if not given:
        return "Say which task: its `id` is missing."
    near = search(tasks.values(), given)[:MAX_NAMED]
    named = ", ".join(f"{task.id} ({task.title})" for task in near)
    advice = f"Did you mean {named}?" if named else "Use a number of the list."
    return f"There is no task {given}. {advice}"


def _after(task: Task, operation: Operation, clock: Clock) -> Task | None:
    match operation.op:
        case "delete" | "bulk_delete":
            return None
        case "complete" | "bulk_complete":
            return _completed(task)
        case "complete_occurrence":
            return _occurrence_completed(task, operation, clock)
        case _:
            return _updated(task, operation.fields, clock)


def _created(fields: Mapping[str, Any], task_id: str, clock: Clock) -> TaskChange:
    if not fields.get("title"):
        raise Invalid("A new task needs a title: say what is to be done.")
    after = _checked(Task(id=task_id, title=""), fields, clock)
    return TaskChange(task_id, None, after)


def _updated(task: Task, fields: Mapping[str, Any], clock: Clock) -> Task:
    if not fields:
        raise Invalid(
            "Say what changes: title, notes, scheduled_for, time, priority, completed or recurrence."
        )
    after = _checked(task, fields, clock)
    if after == task:
        raise Invalid(f"Task {task.id} is already like this. Leave it out.")
    return after


def _checked(task: Task, fields: Mapping[str, Any], clock: Clock) -> Task:
    """The task with these fields; raises Invalid where it would not make sense."""
    after = replace(task, **fields)
    if task.repeats and after.repeats and not after.recurrence.until:  # another rule keeps the end
        after = replace(after, recurrence=replace(after.recurrence, until=task.recurrence.until))
    wrong = []
    if not after.title:
        wrong.append("A task needs a title. Leave the title out to keep it.")
    for name, most in (("title", MAX_TITLE), ("notes", MAX_NOTES)):
        if len(getattr(after, name)) > most:
            wrong.append(f"The {name} has more than {most:,} characters. Shorten it.")
    if not after.repeats:
        after = replace(after, recurrence=NO_RECURRENCE, completed_occurrences=())
    elif not after.scheduled_for:
        wrong.append("A repeating task needs a date from which it repeats: give `scheduled_for`.")
    elif after.completed:
        wrong.append(
            "A repeating task is completed one occurrence at a time: use complete_occurrence with a date."
        )
    else:
        after = _with_until(after, clock)
        if next_occurrence(after, date.fromisoformat(after.scheduled_for)) is None:
            wrong.append(
                f"It would never occur: it begins on {after.scheduled_for} and ends on "
                f"{after.recurrence.until}. Give a later `until`."
            )
    if wrong:
        raise Invalid(*wrong)
    return after


def _with_until(task: Task, clock: Clock) -> Task:
    """The task with the day until which it repeats; default: the end of this year, or of that of its date."""
    if task.recurrence.until:
        return task
    year = max(clock.today.year, date.fromisoformat(task.scheduled_for).year)
    return replace(task, recurrence=replace(task.recurrence, until=f"{year}-12-31"))


def _completed(task: Task) -> Task:
    if task.repeats:
        raise Invalid(
            f"Task {task.id} repeats, and is completed one occurrence at a time: use complete_occurrence "
            "with a date, or leave repeating tasks out."
        )
    if task.completed:
        raise Invalid(f"Task {task.id} is already completed. Leave it out.")
    return replace(task, completed=True)


def _occurrence_completed(task: Task, operation: Operation, clock: Clock) -> Task:
    if not task.repeats:
        raise Invalid(f"Task {task.id} does not repeat: use complete.")
    done = set(task.completed_occurrences)
    if not operation.completed:
        day = operation.date or max(done, default="")
        if day not in done:
            raise Invalid(f"Task {task.id} was not completed on {day or 'any day'}. Name another date.")
        return replace(task, completed_occurrences=tuple(sorted(done - {day})))
    due = open_occurrence(task, clock.today)
    day = operation.date or (due.isoformat() if due else "")
    if not day:
        raise Invalid(f"Task {task.id} has no open occurrence. It repeats until {task.recurrence.until}.")
    if not occurs_on(task, date.fromisoformat(day)):
        later = next_occurrence(task, date.fromisoformat(day))
        advice = f"After that it occurs on {later}." if later else f"It ends on {task.recurrence.until}."
        raise Invalid(f"Task {task.id} does not occur on {day}. {advice}")
    if day in done:
        raise Invalid(f"Task {task.id} is already completed for {day}. Leave it out.")
    return replace(task, completed_occurrences=tuple(sorted(done | {day})))


def _bulk_changes(tasks: Tasks, operation: Operation, clock: Clock) -> list[TaskChange]:
    where = operation.where
    if where is None or where == TaskFilter():
        raise Invalid("Say which tasks: `where` has no condition. For all open ones, use completed: false.")
    if unknown := [each for each in where.ids if each not in tasks]:
        raise Invalid(*(_unknown(tasks, each) for each in unknown[:MAX_NAMED]))
    if operation.op == "bulk_update" and "title" in operation.fields:
        raise Invalid("Many tasks cannot get the same title. Update them one by one.")
    if operation.op == "bulk_complete" and where.completed is None:
        where = replace(where, completed=False)  # what is done stays as it is
    found = selected(tasks, where, clock.today)
    if not found:
        raise Invalid("No task matches `where`. Check its conditions.")
    changes, wrong = [], list[str]()
    for task in found:
        try:
            changes.append(TaskChange(task.id, task, _after(task, operation, clock)))
        except Invalid as invalid:
            wrong += [f"Task {task.id}: {reason}" for reason in invalid.reasons]
    same = [each for each in wrong if each.endswith("is already like this. Leave it out.")]
    if len(wrong) > len(same) or not changes:  # those that are as wanted stay as they are
        raise Invalid(*[each for each in wrong if each not in same or not changes][:MAX_NAMED])
    return changes
