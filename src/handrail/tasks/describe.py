"""Tasks and proposed operations in plain words: lines for people and models, and what is still missing."""

from collections.abc import Iterable, Sequence
from datetime import date

from handrail.protocol.events import TasksChanged
from handrail.protocol.task import OperationReport, OperationResult, OperationSummary, Task, TaskKind
from handrail.tasks.recurrence import next_occurrence, next_open_occurrence, open_occurrence

VERBS = {
    "create": "add",
    "update": "change",
    "bulk_update": "change",
    "delete": "delete",
    "bulk_delete": "delete",
    "complete": "complete",
    "bulk_complete": "complete",
    "complete_occurrence": "complete",
}
FIELD_NAMES = {"scheduled_for": "date", "completed": "done", "recurrence": "repeats"}
HABIT_KINDS = ("daily", "weekdays", "every_n_days")
MAX_VALUE = 200
"""Of notes and titles, in a line about a change."""
HOW_TO_UNDO = "`handrail tasks undo` or `/tasks undo` undoes it."
NO_CHANGE = "Nothing would change."


def day_text(day: str) -> str:
    """`Fri 2026-11-20`."""
    return f"{date.fromisoformat(day):%a} {day}" if day else ""


def repeat_words(task: Task) -> str:
    rule = task.recurrence
    return f"every {rule.days} days" if rule.type == "every_n_days" else rule.type if task.repeats else ""


def repeat_text(task: Task) -> str:
    return f"{repeat_words(task)} until {task.recurrence.until}" if task.repeats else ""


def task_line(task: Task, today: date) -> str:
    """The task as a model is shown it: number, title, and what is set."""
    parts = [f"{task.id} {task.title}", " ".join(filter(None, (day_text(task.scheduled_for), task.time)))]
    if task.repeats:
        coming = next_occurrence(task, today)
        done = f", done on {', '.join(task.completed_occurrences[-3:])}" if task.completed_occurrences else ""
        parts.append(f"repeats {repeat_text(task)}, next {coming or 'never'}{done}")
    parts += [f"{task.priority} priority" if task.priority else "", "done" if task.completed else ""]
    notes = " ".join(task.notes.split())
    parts.append(f"notes: {notes[:80]}" if notes else "")
    return " | ".join(filter(None, parts))


def listed_lines(tasks: Iterable[Task], today: date, first: str = "") -> list[str]:
    """Tasks for people, the earliest first: `Pay rent, tomorrow 09:00, monthly (#3)`.

    A repeating one has its occurrence on or after `first`; without that, the one that is to be done next.
    """
    dated = [(_shown_day(task, today, first), task) for task in tasks]
    dated.sort(key=lambda each: (each[0] or date.max, each[1].time or "99", each[1].number))
    return [_listed_line(task, day, today) for day, task in dated]


def _shown_day(task: Task, today: date, first: str) -> date | None:
    if not task.repeats:
        return date.fromisoformat(task.scheduled_for) if task.scheduled_for else None
    return next_open_occurrence(task, date.fromisoformat(first)) if first else open_occurrence(task, today)


def _listed_line(task: Task, day: date | None, today: date) -> str:
    parts = [task.title, f"{near_day(day, today)} {task.time}".strip(), repeat_words(task)]
    parts += [f"{task.priority} priority" if task.priority else "", "done" if task.completed else ""]
    return f"{', '.join(filter(None, parts))} (#{task.id})"


def near_day(day: date | None, today: date) -> str:
    """`today`, `tomorrow`, `Fri 20 Nov`, `Fri 1 Jan 2027`; empty without a day."""
    if day is None:
        return ""
    near = {0: "today", 1: "tomorrow", -1: "yesterday"}.get((day - today).days)
    year = f" {day.year}" if day.year != today.year else ""
    return near or f"{day:%a} {day.day} {day:%b}{year}"


def kind_of(result: OperationResult) -> TaskKind:
    """What the task is: as proposed, or by what is set."""
    said, task = result.op.get("kind", ""), result.after or result.before
    for kind in ("task", "habit", "goal", "event"):
        if said == kind:
            return kind
    if task and task.repeats:
        return "habit" if task.recurrence.type in HABIT_KINDS else "task"
    return "event" if task and task.time else "task"


def missing(result: OperationResult) -> tuple[str, ...]:
    """What a new task of its kind still lacks."""
    task = result.after
    if result.op.get("op") != "create" or task is None:
        return ()
    match kind_of(result):
        case "habit" if not task.repeats:
            return ("how often it repeats",)
        case "goal" if not task.scheduled_for:
            return ("a date by which",)
        case "event":
            wanted = (("a date", task.scheduled_for), ("a time", task.time))
            return tuple(name for name, value in wanted if not value)
        case _:
            return ()


def operation_line(result: OperationResult, names: Sequence[str] = ()) -> str:
    """The operation in one line; `names`: titles of the tasks that it changes."""
    op = result.op.get("op", "")
    verb = VERBS.get(op, op or "?")
    if not result.valid:
        return f"{verb}: {' '.join(result.errors)}"
    task = result.after or result.before
    if task is None:
        shown = ", ".join(names[:5]) + (", ..." if result.count > 5 else "")
        return f"{verb} {result.count} tasks: {shown}{_set_fields(result)}"
    if op == "create":
        parts = [f" on {day_text(task.scheduled_for)}" if task.scheduled_for else ""]
        parts += [f" at {task.time}" if task.time else "", f", {repeat_text(task)}" if task.repeats else ""]
        parts += [f", {task.priority} priority" if task.priority else ""]
        lacks = missing(result)
        open_points = f"; still missing: {', '.join(lacks)}" if lacks else ""
        return f'{verb} "{task.title}"{"".join(parts)} ({kind_of(result)}{open_points})'
    where = f'{verb} {task.id} "{task.title}"'
    if op == "complete_occurrence" and result.before and result.after:
        (day,) = {*result.before.completed_occurrences} ^ {*result.after.completed_occurrences}
        undone = "" if day in result.after.completed_occurrences else "open again "
        return f"{where} {undone}for {day_text(day)}"
    if op == "update" and result.before and result.after:
        return f"{where}: {'; '.join(_differences(result.before, result.after))}"
    return where


def _set_fields(result: OperationResult) -> str:
    """What a bulk update sets."""
    skipped = ("op", "where", "kind")
    found = {name: value for name, value in result.op.items() if name not in skipped}
    shown = (f"{FIELD_NAMES.get(name, name)} {_value(name, value)}" for name, value in found.items())
    return f" (set {', '.join(shown)})" if found else ""


def _value(name: str, value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("type"))
    if name == "scheduled_for" and isinstance(value, str) and value:
        return day_text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " ".join(str(value).split()) or "none"
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


def _differences(before: Task, after: Task) -> Iterable[str]:
    for name in ("title", "notes", "scheduled_for", "time", "priority", "completed"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            shown = (
                "repeats from" if name == "scheduled_for" and after.repeats else FIELD_NAMES.get(name, name)
            )
            yield f"{shown} {_value(name, old)} → {_value(name, new)}"
    if before.recurrence != after.recurrence:
        yield f"repeats {repeat_text(before) or 'never'} → {repeat_text(after) or 'never'}"


def summary_text(report: OperationReport) -> str:
    """What the valid operations would do, in one sentence; without a model."""
    return _counted(report.summary, "This would {}.") or NO_CHANGE


def applied_text(summary: OperationSummary) -> str:
    past = {"add": "added", "change": "changed", "complete": "completed", "delete": "deleted"}
    text = _counted(summary, "{}.")
    for verb, done in past.items():
        text = text.replace(f"{verb} ", f"{done} ", 1)
    return text[:1].upper() + text[1:] if text else "Nothing was changed."


def undo_text(last: TasksChanged | None) -> str:
    """What can be undone, and how."""
    if last is None:
        return "There is no change of the task list to undo."
    done = applied_text(last.report.summary)
    return f"The last change {done[:1].lower()}{done[1:]} {HOW_TO_UNDO}"


def _counted(summary: OperationSummary, frame: str) -> str:
    counts = [("add", summary.created), ("change", summary.updated)]
    counts += [("complete", summary.completed), ("delete", summary.deleted)]
    parts = [f"{verb} {count} {'task' if count == 1 else 'tasks'}" for verb, count in counts if count]
    joined = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
    return frame.format(joined) if parts else ""
