"""Tasks as lines of the terminal: the agenda, a week, one task in full."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from handrail.interfaces.cli.render.styles import Line, Piece, columns, count_of, fit, line, one_line
from handrail.protocol.task import Recurrence, Task

if TYPE_CHECKING:
    from handrail.app.tasks import Agenda, DatedTask, Undone

OPEN, DONE, REPEATS = "○", "✓", "↻"
MIN_TITLE, GAPS, MAX_SHOWN = 20, 7, 10


def day_text(day: date, today: date) -> str:
    """`today`, `tomorrow`, `Fri 20 Nov`, `Fri 1 Jan 2027`."""
    near = {0: "today", 1: "tomorrow", -1: "yesterday"}.get((day - today).days)
    year = f" {day.year}" if day.year != today.year else ""
    return near or f"{day:%a} {day.day} {day:%b}{year}"


def repeat_text(rule: Recurrence) -> str:
    return f"every {rule.days} days" if rule.type == "every_n_days" else rule.type


def agenda_lines(groups: "Sequence[Agenda]", today: date, width: int) -> Iterator[Line]:
    """All tasks under their headings."""
    seen = {group.heading: None if group.heading == "Today" else today for group in groups}
    form = Columns.of([(each, seen[group.heading]) for group in groups for each in group.tasks], width)
    for at, group in enumerate(groups):
        if at:
            yield ()
        style = "accent" if group.heading == "Overdue" else "bold"
        yield line((style, group.heading), ("dim", f"  {len(group.tasks)}"))
        for each in group.tasks:
            yield task_line(each, form, seen[group.heading])


def found_lines(tasks: "Sequence[DatedTask]", today: date, width: int) -> Iterator[Line]:
    form = Columns.of([(each, today) for each in tasks], width)
    return (task_line(each, form, today) for each in tasks)


def week_lines(days: "Sequence[tuple[date, Sequence[DatedTask]]]", today: date, width: int) -> Iterator[Line]:
    form = Columns.of([(each, None) for _, found in days for each in found], width)
    for day, found in days:
        style = "accent" if day == today else "bold" if found else "dim"
        year = f" {day.year}" if day.year != today.year else ""
        yield line((style, f"{day:%a} {day.day} {day:%b}{year}"), ("dim", "  today" if day == today else ""))
        for each in found:
            yield task_line(each, form, None)


class Columns(NamedTuple):
    """Widths that all lines of a list share."""

    number: int
    title: int

    @classmethod
    def of(cls, tasks: "Sequence[tuple[DatedTask, date | None]]", width: int) -> "Columns":
        """`tasks`: each with the day from which its date is seen."""
        number = max((len(each.task.id) for each, _ in tasks), default=1)
        longest = max((columns(one_line(each.task.title)) for each, _ in tasks), default=0)
        details = max((columns(_details(each, today)) for each, today in tasks), default=0)
        return cls(number, min(longest, max(MIN_TITLE, width - number - details - GAPS)))


def task_line(each: "DatedTask", form: Columns, today: date | None) -> Line:
    """Number, title and details; `today`: with its date, as seen from today."""
    task = each.task
    title = fit(one_line(task.title), form.title)
    style = "dim" if each.done else "bold" if task.priority == "high" else ""
    after = _details(each, today)
    gap = " " * (form.title - columns(title) + 2)
    end = (Piece("", gap), Piece("dim", after)) if after else ()
    mark = DONE if each.done else OPEN
    return (Piece("dim", f"  {task.id:>{form.number}} {mark} "), Piece(style, title), *end)


def _details(each: "DatedTask", today: date | None) -> str:
    task = each.task
    day = day_text(each.day, today) if each.day and today else ""
    details = [
        f"{day} {task.time}".strip(),
        f"{REPEATS} {repeat_text(task.recurrence)}" if task.repeats else "",
    ]
    details += [f"{task.priority} priority" if task.priority else ""]
    return "  ".join(filter(None, details))


def task_text(task: Task, today: date) -> str:
    """The task in one phrase: `12 Call Zoë, Fri 20 Nov 19:00, high, weekly until 2026-12-31`."""
    parts = [f"{task.id} {one_line(task.title)}"]
    if task.scheduled_for:
        day = day_text(date.fromisoformat(task.scheduled_for), today)
        parts.append(f"{'from ' if task.repeats else ''}{day} {task.time}".strip())
    elif task.time:
        parts.append(task.time)
    parts += [task.priority] if task.priority else []
    if task.repeats:
        parts.append(f"{repeat_text(task.recurrence)} until {task.recurrence.until}")
    return ", ".join(parts)


def undone_lines(undone: "Undone", today: date) -> Iterator[str]:
    """What an undo has given back or taken away."""
    for change in undone.changes[:MAX_SHOWN]:
        if change.after is None:
            yield f"Removed {change.id} {one_line(change.before.title) if change.before else ''}".rstrip()
        else:
            verb = "Back:" if change.before is None else "As before:"
            yield f"{verb} {task_text(change.after, today)}"
    if (more := len(undone.changes) - MAX_SHOWN) > 0:
        yield f"and {count_of(more, 'task')} more"


def task_details(task: Task, next_day: date | None, today: date) -> Iterator[Line]:
    yield line(("bold", one_line(task.title)))
    rows = [("number", task.id), ("state", "done" if task.completed else "open")]
    if task.scheduled_for:
        name = "repeats from" if task.repeats else "date"
        rows.append((name, f"{day_text(date.fromisoformat(task.scheduled_for), today)} {task.time}".strip()))
    if task.repeats:
        rows.append(("repeats", f"{repeat_text(task.recurrence)} until {task.recurrence.until}"))
        rows.append(("next", day_text(next_day, today) if next_day else "never"))
        rows.append(("done on", ", ".join(task.completed_occurrences[-5:]) or "no day yet"))
    rows += [("priority", task.priority)] if task.priority else []
    for name, value in rows:
        yield line(("dim", f"  {name:<13}"), value)
    if task.notes:
        yield ()
        yield from (line(f"  {text}") for text in task.notes.splitlines())
