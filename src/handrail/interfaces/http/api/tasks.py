"""The user's task list: agenda, week, search, changes by fields or operations, undo, work on a task."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from handrail.app.tasks import (
    DatedTask,
    ShownOperation,
    agenda,
    checklist_document,
    dated,
    find_day,
    on_day,
    promote_to_intent,
    shown_operations,
    start_build,
    week,
)
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.interfaces.http.errors import ApiError, not_found
from handrail.protocol.errors import ToolRefused, UsageProblem
from handrail.protocol.task import OperationReport, OperationSummary, Recurrence, Task, TaskChange
from handrail.protocol.values import TaskFilter, Value, is_deeper, to_dict

MAX_PAGE, MAX_SEARCH, MAX_OPERATIONS, MAX_DEPTH = 500, 500, 200, 8
INVALID_REQUEST, INVALID_OPERATIONS = "invalid_request", "invalid_operations"
KEY_HEADER = "idempotency-key"
KEY = re.compile(r"[!-~]{1,200}")
Words = Annotated[str, Meta(max_length=100)]


# Reading


class ShownTask(Value):
    task: Task
    day: str
    """When it is due, or the day of the occurrence that is shown; empty: no date."""
    done: bool


class ShownGroup(Value):
    heading: str
    day: str
    """Of the view `week`."""
    count: int
    """Tasks of the whole group, not only of this page."""
    tasks: tuple[ShownTask, ...]


class TaskPage(Value):
    view: str
    today: str
    total: int
    next: int | None
    """The `offset` of the next page; null: this is the last one."""
    undoable: bool
    """There is a change to undo."""
    groups: tuple[ShownGroup, ...]


class TasksQuery(Value):
    view: Literal["all", "agenda", "week"] = "all"
    week: Words = ""
    """A date of the week, for that view; this week when empty."""
    on: Words = ""
    """Only what is on this day, whatever the view."""
    priority: Literal["", "low", "medium", "high"] = ""
    completed: bool | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 100
    offset: Annotated[int, Meta(ge=0, le=10_000_000)] = 0


def _shown(each: DatedTask) -> ShownTask:
    return ShownTask(each.task, str(each.day or ""), each.done)


def _day(call: Call, words: str) -> Any:
    try:
        return find_day(call.app.tasks, words)
    except UsageProblem as problem:
        raise ApiError(400, INVALID_REQUEST, str(problem), "Write a date such as 2026-12-01.") from problem


async def list_tasks(call: Call, query: TasksQuery) -> TaskPage:
    """Tasks of the list: all by number, the agenda, or a week with what repeats."""
    tasks = call.app.tasks
    today = tasks.clock.today
    where = TaskFilter(priority=query.priority, completed=query.completed)
    found = sorted(tasks.find(where), key=lambda task: task.number)
    groups: list[tuple[str, str, Sequence[DatedTask]]]
    if query.on:
        day = _day(call, query.on)
        groups = [(f"{day:%A}", str(day), on_day(found, day))]
    elif query.view == "agenda":
        groups = [(group.heading, "", group.tasks) for group in agenda(found, today)]
    elif query.view == "week":
        days = week(found, _day(call, query.week) if query.week else today)
        groups = [(f"{each:%A}", str(each), shown) for each, shown in days]
    else:
        groups = [("All", "", [dated(task, today) for task in found])]
    total = sum(len(each) for _, _, each in groups)
    end = query.offset + query.limit
    return TaskPage(
        query.view,
        str(today),
        total,
        end if end < total else None,
        bool(tasks.load().undoable),
        tuple(_cut(groups, query)),
    )


def _cut(groups: Iterable[tuple[str, str, Sequence[DatedTask]]], query: TasksQuery) -> Iterable[ShownGroup]:
    """The part of each group that is on the page."""
    skip, left = query.offset, query.limit
    for heading, day, found in groups:
        shown = tuple(map(_shown, islice(found, skip, skip + left)))
        skip, left = max(0, skip - len(found)), left - len(shown)
        yield ShownGroup(heading, day, len(found), shown)


class SearchTasks(Value):
    text: Annotated[str, Meta(min_length=1, max_length=500)]
    """Words of title or notes; case and accents do not matter."""
    limit: Annotated[int, Meta(ge=1, le=MAX_SEARCH)] = 50


class FoundTasks(Value):
    total: int
    tasks: tuple[ShownTask, ...]


async def search_tasks(call: Call, query: SearchTasks) -> FoundTasks:
    """Tasks that have all the words, the best first, done ones too."""
    found = call.app.tasks.search(query.text)
    today = call.app.tasks.clock.today
    return FoundTasks(len(found), tuple(_shown(dated(task, today)) for task in found[: query.limit]))


def _find(call: Call) -> Task:
    if task := call.app.tasks.get(call.names["task"]):
        return task
    raise not_found(f"There is no task {call.names['task']!r}.", "GET tasks lists them.")


async def show_task(call: Call) -> ShownTask:
    """One task, by its number."""
    return _shown(dated(_find(call), call.app.tasks.clock.today))


# Changing


class TaskFields(Value, kw_only=True):
    """Fields of a task, with dates and recurrences as people write them."""

    notes: str | UnsetType = UNSET
    scheduled_for: str | UnsetType = UNSET
    """`2026-12-01`, `tomorrow`, `fri`; empty: no date."""
    time: str | UnsetType = UNSET
    """`09:30` or `7pm`; empty: none."""
    priority: Literal["", "low", "medium", "high"] | UnsetType = UNSET
    recurrence: str | Recurrence | UnsetType = UNSET
    """`daily`, `weekdays`, `weekly`, `monthly`, `every 3 days`; `none`: it no longer repeats."""
    until: str | UnsetType = UNSET
    """The last day of the recurrence."""


class NewTask(TaskFields, kw_only=True):
    title: str


class TaskPatch(TaskFields, kw_only=True):
    title: str | UnsetType = UNSET
    completed: bool | UnsetType = UNSET


class ChangedTask(Value):
    task: Task | None
    """As it is now; null: it is deleted."""
    change_id: str
    """For `tasks/undo`."""


def _apply_one(call: Call, operation: dict[str, Any]) -> ChangedTask:
    applied = call.app.tasks.apply([operation])
    (result,) = applied.report.results
    if not result.valid:
        raise _invalid(applied.report)
    return ChangedTask(result.after, applied.change_id)


def _invalid(report: OperationReport) -> ApiError:
    details = tuple(f"{number}: {' '.join(each.errors)}" for number, each in enumerate(report.results, 1))
    text = " ".join(report.results[0].errors) if len(details) == 1 else "None of the operations can be done."
    return ApiError(400, INVALID_OPERATIONS, text, "Change the operations as `details` says.", details)


async def create_task(call: Call, body: NewTask) -> ChangedTask:
    """Add a task."""
    return _apply_one(call, {"op": "create", **to_dict(body)})


async def patch_task(call: Call, body: TaskPatch) -> ChangedTask:
    """Change fields of a task."""
    task, fields = _find(call), to_dict(body)
    if "until" in fields and "recurrence" not in fields:
        fields["recurrence"] = to_dict(task.recurrence)
    if isinstance(fields.get("recurrence"), dict) and "until" in fields:
        fields["recurrence"]["until"] = fields["until"]
    return _apply_one(call, {"op": "update", "id": task.id, **fields})


async def delete_task(call: Call) -> ChangedTask:
    """Delete a task; undo gives it back."""
    return _apply_one(call, {"op": "delete", "id": _find(call).id})


class UndoTasks(Value):
    change_id: Annotated[str, Meta(max_length=100)] = ""
    """Only if this is the last change; empty: whichever is."""


class UndoneTasks(Value):
    change_id: str
    changes: tuple[TaskChange, ...]


async def undo_tasks(call: Call, body: UndoTasks) -> UndoneTasks:
    """Undo the last change of the list; again: the one before it."""
    return UndoneTasks(*call.app.tasks.undo(body.change_id))


# Operations


class Operations(Value):
    operations: Annotated[tuple[dict[str, Any], ...], Meta(min_length=1, max_length=MAX_OPERATIONS)]
    """Each is an operation, or has it in `op`, with `seen`, as an answer of the API showed it."""


class ShownReport(Value):
    results: tuple[ShownOperation, ...]
    summary: OperationSummary
    warnings: tuple[str, ...]
    """Each is a reason to ask the user a second time."""
    change_id: str = ""
    """For `tasks/undo`, where something was changed."""


def _unwrap(body: Operations) -> tuple[list[Any], list[str]]:
    """The operations, and what the user has seen of each."""
    if is_deeper(body.operations, MAX_DEPTH):
        raise ApiError(
            400, INVALID_OPERATIONS, "An operation is nested too deeply.", "Send plain operations."
        )
    given = [each if isinstance(each.get("op"), dict) else {"op": each} for each in body.operations]
    return [each["op"] for each in given], [str(each.get("seen", "")) for each in given]


async def dry_run(call: Call, body: Operations) -> ShownReport:
    """What applying the operations would do; nothing is changed."""
    tasks = call.app.tasks
    report = tasks.preview(_unwrap(body)[0])
    shown = shown_operations(report, tasks.load().tasks, all_ids=False)
    return ShownReport(shown, report.summary, report.warnings)


async def apply_operations(call: Call, body: Operations) -> ShownReport:
    """Apply the valid operations; with the same `Idempotency-Key`, once in 10 minutes."""
    key = call.request.headers.get(KEY_HEADER, "")
    if key and not KEY.fullmatch(key):
        advice = "Send up to 200 printable ASCII characters without spaces."
        raise ApiError(400, INVALID_REQUEST, "The Idempotency-Key cannot be used.", advice)
    tasks = call.app.tasks
    operations, seen = _unwrap(body)
    names = dict(tasks.load().tasks) if any(each.get("where") for each in operations) else {}
    applied = tasks.apply(operations, key=key, seen=seen)
    if not any(each.valid for each in applied.report.results):
        raise _invalid(applied.report)
    shown = shown_operations(applied.report, names, all_ids=True)
    return ShownReport(shown, applied.report.summary, applied.report.warnings, applied.change_id)


# From a task to work on the files


class Promotion(Value):
    """One of `intent` and `checklist`."""

    intent: Annotated[str, Meta(max_length=100)] = ""
    """The id of a new intent."""
    scope: tuple[Annotated[str, Meta(max_length=2_000)], ...] = ()
    """What the intent owns."""
    checklist: Annotated[str, Meta(max_length=4_096)] = ""
    """A file in Markdown, to which an item is added."""


class Promoted(Value):
    intent: str
    checklist: str
    change_id: str
    """The change set of the checklist."""


async def promote_task(call: Call, body: Promotion) -> Promoted:
    """Make a task an intent, or an item of a checklist."""
    task = _find(call)
    if bool(body.intent) == bool(body.checklist):
        raise UsageProblem("Say what it becomes: `intent`, or `checklist`.")
    if body.intent:
        promote_to_intent(call.app, task, body.intent, body.scope)
        return Promoted(body.intent, "", "")
    document = checklist_document(call.app.workspace, task, body.checklist)
    title = f"task {task.id} to {body.checklist}"
    finished = await call.app.proposals.apply(document, title=title, word=None)
    if finished.error:
        raise ToolRefused(finished.error)
    if finished.status != "ok":
        raise UsageProblem(finished.content)
    return Promoted("", body.checklist, finished.content)


class TaskBuild(Value):
    session: str
    """Its events say how the build goes."""


async def build_task(call: Call) -> TaskBuild:
    """Do a task by a verified build in a new session; it is completed where that succeeds."""
    return TaskBuild(await start_build(call.app, _find(call)))


TASK_ENDPOINTS = (
    Endpoint("GET", "/tasks", list_tasks, invalid=INVALID_REQUEST),
    Endpoint("POST", "/tasks", create_task, status=201, invalid=INVALID_OPERATIONS),
    Endpoint("GET", "/tasks/search", search_tasks, invalid=INVALID_REQUEST),
    Endpoint("POST", "/tasks/undo", undo_tasks, invalid=INVALID_REQUEST),
    Endpoint("GET", "/tasks/{task}", show_task, invalid=INVALID_REQUEST),
    Endpoint("PATCH", "/tasks/{task}", patch_task, invalid=INVALID_OPERATIONS),
    Endpoint("DELETE", "/tasks/{task}", delete_task, invalid=INVALID_REQUEST),
    Endpoint("POST", "/tasks/{task}/promote", promote_task, invalid=INVALID_REQUEST),
    Endpoint("POST", "/tasks/{task}/build", build_task, status=202, invalid=INVALID_REQUEST),
    Endpoint("POST", "/llm/dryrun", dry_run, invalid=INVALID_OPERATIONS),
    Endpoint("POST", "/llm/apply", apply_operations, invalid=INVALID_OPERATIONS, headers=(KEY_HEADER,)),
)
