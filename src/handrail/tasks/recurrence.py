"""Occurrences of repeating tasks: calendar dates, and instants in a time zone."""

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from handrail.protocol.task import Task

ONE_DAY = timedelta(days=1)
SATURDAY = 5
WEEK = 7
MAX_LATE_DAYS = 31


def next_occurrence(task: Task, day: date) -> date | None:
    """The first date on or after `day` on which the task occurs; None where there is none.

    A task that does not repeat occurs on its scheduled date. A monthly one of the 31st occurs on the last day
    of a shorter month.
    """
    if not task.scheduled_for:
        return None
    anchor = date.fromisoformat(task.scheduled_for)
    rule = task.recurrence
    start = max(anchor, day)
    match rule.type:
        case "daily":
            found = start
        case "weekdays":
            found = start + (WEEK - start.weekday()) * ONE_DAY if start.weekday() >= SATURDAY else start
        case "weekly":
            found = _every(anchor, WEEK, start)
        case "every_n_days":
            found = _every(anchor, rule.days, start)
        case "monthly":
            found = _monthly(anchor, start)
        case _:
            found = anchor
    if found < day or (rule.type != "none" and rule.until and found > date.fromisoformat(rule.until)):
        return None
    return found


def _every(anchor: date, days: int, start: date) -> date:
    return start + (-(start - anchor).days % days) * ONE_DAY


def _monthly(anchor: date, start: date) -> date:
    found = _day_of_month(start.year, start.month, anchor.day)
    if found >= start:
        return found
    year, month = (start.year + 1, 1) if start.month == 12 else (start.year, start.month + 1)
    return _day_of_month(year, month, anchor.day)


def _day_of_month(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, monthrange(year, month)[1]))


def occurrences(task: Task, first: date, last: date) -> Iterator[date]:
    """The dates from `first` to `last`, both included, on which the task occurs."""
    day = first
    while (found := next_occurrence(task, day)) and found <= last:
        yield found
        day = found + ONE_DAY


def occurs_on(task: Task, day: date) -> bool:
    return next_occurrence(task, day) == day


def instant(day: date, time_of_day: str, zone: ZoneInfo) -> datetime:
    """The moment of a time of day, in UTC.

    A time that the clock skips is later by what it skips (02:30 becomes 03:30); of one that comes twice, the
    first counts.
    """
    return datetime.combine(day, time.fromisoformat(time_of_day), zone).astimezone(UTC)


def open_occurrence(task: Task, today: date) -> date | None:
    """The occurrence that the user would complete today: the latest one that has come, else the next one."""
    done = set(task.completed_occurrences)
    if not task.scheduled_for:
        return None
    anchor = date.fromisoformat(task.scheduled_for)
    day = today
    while day >= anchor and (today - day).days <= MAX_LATE_DAYS:
        if occurs_on(task, day):
            if day.isoformat() not in done:
                return day
            break  # older ones were passed over
        day -= ONE_DAY
    return next_open_occurrence(task, max(anchor, today))


def next_open_occurrence(task: Task, day: date) -> date | None:
    """The first date on or after `day` on which the task occurs and was not completed."""
    done = set(task.completed_occurrences)
    while found := next_occurrence(task, day):
        if found.isoformat() not in done:
            return found
        day = found + ONE_DAY
    return None
