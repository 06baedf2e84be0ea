"""Operations on the task list in their normal form, from what a person or a model wrote."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import UNSET

from handrail.protocol.task import MAX_EVERY_DAYS, NO_RECURRENCE, Recurrence, Task
from handrail.protocol.values import TaskFilter, to_dict
from handrail.tasks.dates import DATE_HINT, TIME_HINT, WEEKDAYS, read_date, read_time
from handrail.tasks.recurrence import WEEK
from handrail.tasks.search import fold, folded_title

OPS = (
    *("create", "update", "delete", "complete", "complete_occurrence"),
    *("bulk_update", "bulk_complete", "bulk_delete"),
)
OTHER_OPS = {
    **dict.fromkeys(("add", "new", "insert", "create_task", "add_task"), "create"),
    **dict.fromkeys(("edit", "change", "modify", "set", "reschedule", "move", "update_task"), "update"),
    **dict.fromkeys(("remove", "drop", "delete_task"), "delete"),
    **dict.fromkeys(("done", "finish", "check", "mark_done", "complete_task", "mark_complete"), "complete"),
    **dict.fromkeys(("reopen", "uncomplete"), "reopen"),
}
OTHER_NAMES = {
    **dict.fromkeys(("operation", "action", "type"), "op"),
    **dict.fromkeys(("task_id", "taskid"), "id"),
    **dict.fromkeys(("name", "task_title", "text", "summary"), "title"),
    **dict.fromkeys(("note", "description", "details"), "notes"),
    **dict.fromkeys(
        ("scheduledfor", "scheduled", "scheduled_date", "due", "due_date", "duedate", "deadline", "day"),
        "scheduled_for",
    ),
    **dict.fromkeys(("time_of_day", "timeofday", "at"), "time"),
    **dict.fromkeys(("repeat", "repeats", "recurring", "every"), "recurrence"),
    **dict.fromkeys(("done", "complete", "is_completed", "status"), "completed"),
    **dict.fromkeys(("filter", "query"), "where"),
    **dict.fromkeys(("occurrence", "occurrence_date"), "date"),
}
NESTED = ("changes", "fields", "patch", "task", "values", "updates", "data")
PRIORITIES = {
    **dict.fromkeys(("high", "urgent", "important", "p1", "1", "critical", "highest", "h"), "high"),
    **dict.fromkeys(("medium", "normal", "mid", "p2", "2", "med", "m"), "medium"),
    **dict.fromkeys(("low", "p3", "p4", "3", "4", "lowest", "l", "minor"), "low"),
    **dict.fromkeys(("", "none", "no", "null", "0"), ""),
}
TRUTHS = {
    **dict.fromkeys(("true", "yes", "1", "done", "completed", "complete", "y"), True),
    **dict.fromkeys(("false", "no", "0", "open", "pending", "todo", "incomplete", "n"), False),
}
NOTHING = ("", "none", "null", "never", "no", "off", "no date", "unscheduled")
FIELDS = ("title", "notes", "scheduled_for", "time", "priority", "completed", "recurrence")
WHERE_KEYS = ("ids", "text", "scheduled_range", "priority", "completed", "repeating")
KINDS = ("task", "habit", "goal", "event")
REPEAT_HINT = "write none, daily, weekdays, weekly, monthly or every N days"
YEARS = range(1900, 2200)


class Clock(NamedTuple):
    """The user's day, and their time zone."""

    today: date
    zone: ZoneInfo


class Operation(NamedTuple):
    """An operation in its normal form, and what in it could not be understood."""

    op: str
    id: str = ""
    where: TaskFilter | None = None
    fields: Mapping[str, Any] = {}
    date: str = ""
    completed: bool = True
    kind: str = ""
    errors: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"op": self.op}
        if self.id:
            found["id"] = self.id
        if self.where is not None:
            where = to_dict(self.where)
            found["where"] = {name: value for name, value in where.items() if value not in ("", [], None)}
        if self.date:
            found["date"] = self.date
        for name, value in self.fields.items():
            found[name] = to_dict(value) if isinstance(value, Recurrence) else value
        if not self.completed:
            found["completed"] = False
        return found | ({"kind": self.kind} if self.kind else {})


def normalise(raw: object, tasks: Mapping[str, Task], clock: Clock) -> Operation:
    """The operation that was meant: its kind inferred, types and names coerced, dates made absolute."""
    if not isinstance(raw, Mapping):
        return Operation("", errors=("An operation is an object with `op` and its fields.",))
    return _Reader(raw, tasks, clock).operation()


class _Reader:
    def __init__(self, raw: Mapping[str, Any], tasks: Mapping[str, Task], clock: Clock) -> None:
        self._given = _flat(raw)
        self._tasks = tasks
        self._clock = clock
        self._errors: list[str] = []

    def operation(self) -> Operation:
        where = self._where(self._given["where"]) if self._given.get("where") is not None else None
        fields = self._fields()
        op = self._op(where, fields)
        task_id = self._id(op)
        completed = True
        if op == "reopen":
            completed, repeats = False, task_id in self._tasks and self._tasks[task_id].repeats
            op = "complete_occurrence" if repeats else "update"
            if not repeats:
                fields = {**fields, "completed": False}
        elif op in ("complete", "complete_occurrence", "bulk_complete"):
            completed = fields.get("completed", True)
            if not completed and op != "complete_occurrence":
                op = "update" if op == "complete" else "bulk_update"
                fields = {**fields, "completed": False}
        day = self._occurrence(op, task_id, fields)
        bulk = op.startswith("bulk_")
        writes = op in ("create", "update", "bulk_update")
        kind = str(self._given.get("kind", "")).lower()
        return Operation(
            op,
            id="" if bulk or op == "create" else task_id,
            where=where if bulk else None,
            fields=fields if writes else {},
            date=day,
            completed=completed if op == "complete_occurrence" else True,
            kind=kind if kind in KINDS else "",
            errors=tuple(self._errors),
        )

    def _op(self, where: TaskFilter | None, fields: Mapping[str, Any]) -> str:
        said = re.sub(r"[\s-]+", "_", storable(self._given.get("op") or "").strip().lower())
        op = said if said in OPS else OTHER_OPS.get(said, "")
        if said and not op:
            self._errors.append(f"There is no operation {said!r}: use one of {', '.join(OPS)}.")
            return said
        many = where is not None and not self._given.get("id")
        if not op:
            only_done = set(fields) == {"completed"}
            if self._given.get("id") or many:
                op = "complete" if only_done and fields["completed"] else "update"
            else:
                op = "create"
        if many and op in ("update", "complete", "delete"):
            op = f"bulk_{op}"
        if op == "complete" and self._given.get("date"):
            op = "complete_occurrence"
        return op

    def _id(self, op: str) -> str:
        """The id as given; a title that only one task has is its id as well."""
        given = self._given.get("id")
        if given is None or isinstance(given, bool | list | dict):
            title = self._given.get("title") if op in ("delete", "complete", "complete_occurrence") else None
            given = title if isinstance(title, str) else ""
        text = storable(given).strip()
        number = re.fullmatch(r"(?:#|t|task[\s_#-]*)?0*(\d+)(?:[\s|:.,-]+(.*))?", text.lower())
        task = self._tasks.get(number[1]) if number else None
        if number and task and fold(number[2] or task.title) == fold(task.title):  # `5 Buy milk`
            return task.id
        folded = fold(text)
        titled = [task.id for task in self._tasks.values() if text and folded_title(task) == folded]
        return titled[0] if len(titled) == 1 else number[1] if number and not number[2] else text

    def _fields(self) -> dict[str, Any]:
        readers: dict[str, Callable[[Any], Any]] = {
            "title": self._line,
            "notes": self._text,
            "scheduled_for": self._date,
            "time": self._time,
            "priority": self._priority,
            "completed": self._truth,
            "recurrence": self._recurrence,
        }
        found: dict[str, Any] = {}
        for name in FIELDS:
            if name in self._given:
                value = readers[name](self._given[name])
                if value is not UNSET:
                    found[name] = value
        self._add_anchor(found)
        return found

    def _add_anchor(self, found: dict[str, Any]) -> None:
        """`every monday` also says when it begins."""
        weekday = named_weekday(str(self._given.get("recurrence", "")))
        if weekday and not found.get("scheduled_for"):
            anchor = read_date(weekday, self._clock.today, self._clock.zone)
            found["scheduled_for"] = anchor.isoformat() if anchor else ""

    def _line(self, value: Any) -> Any:
        return " ".join(self._text(value).split())

    def _text(self, value: Any) -> str:
        return "" if value is None else storable(value).strip()

    def _date(self, value: Any) -> Any:
        if value is None or str(value).strip().lower() in NOTHING:
            return ""
        found = read_date(str(value), self._clock.today, self._clock.zone)
        if found is None or found.year not in YEARS:
            self._errors.append(f"{str(value)!r} is not a date: {DATE_HINT}.")
            return UNSET
        return found.isoformat()

    def _time(self, value: Any) -> Any:
        if value is None or str(value).strip().lower() in NOTHING:
            return ""
        found = read_time(str(value))
        if found is None:
            self._errors.append(f"{str(value)!r} is not a time of day: {TIME_HINT}.")
            return UNSET
        return found

    def _priority(self, value: Any) -> Any:
        found = PRIORITIES.get(str("" if value is None else value).strip().lower())
        if found is None:
            self._errors.append(f"{str(value)!r} is not a priority: use low, medium, high or none.")
            return UNSET
        return found

    def _truth(self, value: Any) -> Any:
        found = TRUTHS.get(str(value).strip().lower())
        if found is None:
            self._errors.append(f"`completed` is {str(value)!r}: use true or false.")
            return UNSET
        return found

    def _recurrence(self, value: Any) -> Any:
        until = self._given.get("until")
        if isinstance(value, Mapping):
            given = {str(name).lower(): each for name, each in value.items()}
            until = given.get("until", until)
            number = given.get("days") or given.get("interval") or given.get("n")
            said = next(
                (given[each] for each in ("type", "frequency", "freq", "every") if given.get(each)), ""
            )
            rule = read_repeat(_with_number(str(said), number))
        else:
            rule = read_repeat("none" if value in (None, False) else str(value))
        if rule is None:
            self._errors.append(f"{value!r} is not a recurrence: {REPEAT_HINT}.")
            return UNSET
        if rule.type == "none" or until in (None, ""):
            return rule
        last = self._date(until)
        return UNSET if last is UNSET else Recurrence(rule.type, rule.days, last)

    def _where(self, value: Any) -> TaskFilter:
        if not isinstance(value, Mapping):
            self._errors.append('`where` is an object such as {"completed": true}.')
            return TaskFilter()
        given = {OTHER_WHERE.get(_snake(name), _snake(name)): each for name, each in value.items()}
        for name in given.keys() - set(WHERE_KEYS):
            self._errors.append(f"`where` has no {name!r}: use {', '.join(WHERE_KEYS)}.")
        ids = given.get("ids")
        named = [ids] if isinstance(ids, str | int) else ids if isinstance(ids, list | tuple) else []
        priority = self._priority(given["priority"]) if given.get("priority") else ""
        truths = {
            name: self._truth(given[name])
            for name in ("completed", "repeating")
            if given.get(name) is not None
        }
        return TaskFilter(
            ids=tuple(dict.fromkeys(storable(each).strip().lstrip("#") for each in named)),
            text=self._line(given.get("text")),
            scheduled_range=self._range(given.get("scheduled_range")),
            priority="" if priority is UNSET else priority,
            **{name: value for name, value in truths.items() if value is not UNSET},
        )

    def _range(self, value: Any) -> tuple[str, str] | None:
        if not value:
            return None
        if isinstance(value, Mapping):
            ends = [value.get("from", value.get("start")), value.get("to", value.get("end"))]
        else:
            ends = list(value) if isinstance(value, list | tuple) else [value, value]
        if len(ends) != 2:
            self._errors.append("`scheduled_range` has a first and a last date.")
            return None
        first, last = map(self._date, ends)
        if first is UNSET or last is UNSET:
            return None
        if first and last and first > last:
            first, last = last, first
        return (first, last) if first or last else None

    def _occurrence(self, op: str, task_id: str, fields: Mapping[str, Any]) -> str:
        """The date of a completed occurrence; without one, that which is due."""
        if op != "complete_occurrence":
            return ""
        if self._given.get("date"):
            found = self._date(self._given["date"])
            return "" if found is UNSET else str(found)
        return str(fields.get("scheduled_for", ""))


OTHER_WHERE = {
    **dict.fromkeys(("id", "task_ids"), "ids"),
    **dict.fromkeys(("query", "title", "search"), "text"),
    **dict.fromkeys(("scheduled", "scheduled_for", "date", "range", "dates", "due"), "scheduled_range"),
    **dict.fromkeys(("done", "status"), "completed"),
    **dict.fromkeys(("repeats", "recurring"), "repeating"),
}


def _flat(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields under their usual names, those of nested objects included."""
    found: dict[str, Any] = {}
    for given, value in raw.items():
        name = _snake(given)
        if name in NESTED or (name == "set" and isinstance(value, Mapping)):
            if isinstance(value, Mapping):
                found = {**_flat(value), **found}
            continue
        found[name if name in ("op", *FIELDS) else OTHER_NAMES.get(name, name)] = value
    said = str(found.get("op") or "").lower()
    if said in KINDS:  # `type: habit` says what it is, not what to do
        found = {**found, "op": "", "kind": said}
    if "date" in found and "complete" not in OTHER_OPS.get(said, said):
        found.setdefault("scheduled_for", found.pop("date"))
    return found


def storable(value: object) -> str:
    """The value as text that UTF-8 can hold: a model or a terminal can send half a character."""
    return str(value).encode(errors="replace").decode()


def _snake(name: object) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).strip().lower().replace(" ", "_").replace("-", "_")


def _with_number(said: str, number: Any) -> str:
    if number is None or str(number) in ("", "1"):
        return said
    unit = {"weekly": "weeks", "week": "weeks", "monthly": "months", "month": "months"}.get(
        said.lower(), "days"
    )
    return f"every {number} {unit}" if said.lower() not in ("none", "weekdays") else said


def named_weekday(text: str) -> str:
    """The weekday of `every monday` or `weekly on mon`; empty where it names none."""
    found = re.fullmatch(r"(?:every |each )?(?:weekly )?(?:on )?([a-z]{3,9}?)s?", text.strip().lower())
    return next((name for name in WEEKDAYS if found and name.startswith(found[1])), "")


def read_repeat(text: str) -> Recurrence | None:
    """The rule that the words mean; None where they mean none."""
    words = " ".join(re.sub(r"[_-]", " ", text.strip().lower()).split())
    words = re.sub(r"^(?:every|each) ", "", words)
    if words in (*NOTHING, "once", "one time", "n/a"):
        return NO_RECURRENCE
    for names, kind in (
        (("daily", "day", "days", "morning", "evening", "night"), "daily"),
        (("weekday", "weekdays", "workday", "workdays", "work day", "business day"), "weekdays"),
        (("weekly", "week", "weeks"), "weekly"),
        (("monthly", "month", "months"), "monthly"),
    ):
        if words in names:
            return Recurrence(kind)  # type: ignore[arg-type]
    if words in ("biweekly", "fortnightly", "fortnight", "other week", "second week"):
        return Recurrence("every_n_days", 2 * WEEK)
    if words in ("other day", "second day", "2nd day"):
        return Recurrence("every_n_days", 2)
    if named_weekday(words):
        return Recurrence("weekly")
    found = re.fullmatch(r"(\d{1,4}) ?(d|w|days?|weeks?)", words)
    days = int(found[1]) * (WEEK if found[2][0] == "w" else 1) if found else 0
    if not 1 <= days <= MAX_EVERY_DAYS:
        return None
    return {1: Recurrence("daily"), WEEK: Recurrence("weekly")}.get(days, Recurrence("every_n_days", days))
