"""The user's task list for interfaces: agenda, week, operations as shown, promoting and building a task."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.changes.forms.document import CreateChange, Document, RewriteChange
from handrail.protocol.commands import SendMessage, SetMode
from handrail.protocol.errors import HandrailError, PathProblem, UsageProblem
from handrail.protocol.task import OperationReport, OperationResult, Task, TaskKind
from handrail.protocol.values import Value
from handrail.tasks.dates import DATE_HINT, read_date, week_of
from handrail.tasks.describe import applied_text, kind_of, missing, operation_line
from handrail.tasks.normalise import YEARS, named_weekday
from handrail.tasks.recurrence import ONE_DAY, occurrences, open_occurrence
from handrail.tasks.task_list import MAX_DRYRUN_IDS, TaskList, Undone, target_digest
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.builds.build import BuildResult

__all__ = ["TaskList", "Undone", "named_weekday"]

DAYS_OF_WEEK = 7
MAX_NAMED = 5


class DatedTask(NamedTuple):
    """A task on the day for which it is shown."""

    task: Task
    day: date | None
    done: bool


class Agenda(NamedTuple):
    """Tasks under a heading: overdue, today, this week, later, without a date, done."""

    heading: str
    tasks: tuple[DatedTask, ...]


def agenda(tasks: Sequence[Task], today: date) -> list[Agenda]:
    """The tasks by when they are due; headings without tasks are left out."""
    sunday = week_of(today)[1]
    groups: dict[str, list[DatedTask]] = {
        name: [] for name in ("Overdue", "Today", "This week", "Later", "No date", "Done")
    }
    for task in tasks:
        each = dated(task, today)
        if each.done:
            groups["Done"].append(each)
        elif each.day is None:
            groups["No date"].append(each)
        else:
            name = "Overdue" if each.day < today else "Today" if each.day == today else "Later"
            groups["This week" if today < each.day <= sunday else name].append(each)
    return [Agenda(name, tuple(sorted(found, key=_order))) for name, found in groups.items() if found]


def dated(task: Task, today: date) -> DatedTask:
    """The task on its scheduled day; a repeating one on that of the occurrence to do next."""
    if task.repeats:
        day = open_occurrence(task, today)
        return DatedTask(task, day, done=day is None)
    day = date.fromisoformat(task.scheduled_for) if task.scheduled_for else None
    return DatedTask(task, day, task.completed)


def week(tasks: Sequence[Task], day: date) -> list[tuple[date, tuple[DatedTask, ...]]]:
    """Monday to Sunday of the day's week, each with what occurs on it, the done included."""
    monday, sunday = week_of(day)
    found: dict[date, list[DatedTask]] = {monday + number * ONE_DAY: [] for number in range(DAYS_OF_WEEK)}
    for task in tasks:
        for each in occurrences(task, monday, sunday):
            done = each.isoformat() in task.completed_occurrences if task.repeats else task.completed
            found[each].append(DatedTask(task, each, done))
    return [(each, tuple(sorted(shown, key=_order))) for each, shown in found.items()]


def on_day(tasks: Sequence[Task], day: date) -> tuple[DatedTask, ...]:
    """What is on one day, the done included."""
    return dict(week(tasks, day))[day]


def _order(each: DatedTask) -> tuple[bool, date, str, int, int]:
    rank = ("high", "medium", "low", "").index(each.task.priority)
    return each.done, each.day or date.max, each.task.time or "99", rank, each.task.number


class LastChange(NamedTuple):
    """What undo would undo, in a few words: `added “Pay rent”`."""

    change_id: str
    text: str


def last_change(tasks: TaskList) -> LastChange | None:
    found = tasks.last_change()
    if found is None:
        return None
    results = [each for each in found.report.results if each.valid]
    text = applied_text(found.report.summary).rstrip(".")
    task = (results[0].after or results[0].before) if len(results) == 1 else None
    if task:
        text = f"{text.split()[0]} “{task.title}”"
    return LastChange(found.change_id, text[:1].lower() + text[1:])


def find_task(tasks: TaskList, words: str) -> Task:
    """The task of a number, or the only one that has the words; raises UsageProblem."""
    number = words.strip().lstrip("#")
    if task := tasks.get(number):
        return task
    found = [] if number.isdigit() else tasks.search(words)
    still_open = [task for task in found if not task.completed] or found
    exact = [task for task in still_open if task.title.casefold() == words.strip().casefold()]
    match exact or still_open:
        case [task]:
            return task
        case []:
            raise UsageProblem(f"There is no task {words!r}. `handrail tasks` lists them.")
        case several:
            named = ", ".join(f"{task.id} ({task.title})" for task in several[:MAX_NAMED])
            raise UsageProblem(f"Several tasks have {words!r}: {named}. Give the number of one.")


def find_day(tasks: TaskList, words: str) -> date:
    """The day that the words mean; raises UsageProblem."""
    if (found := read_date(words, *tasks.clock)) and found.year in YEARS:
        return found
    raise UsageProblem(f"{words!r} is not a date: {DATE_HINT}.")


# Operations as they are shown


class ShownOperation(Value, kw_only=True):
    """What an operation does to the list, or why it cannot be done."""

    op: dict[str, Any]
    """The operation in its normal form."""
    valid: bool
    errors: tuple[str, ...] = ()
    """What is wrong, each with what to do."""
    kind: TaskKind
    missing: tuple[str, ...] = ()
    """What a new task of its kind still lacks."""
    text: str
    """The operation in one line."""
    before: Task | None = None
    after: Task | None = None
    """Of an operation on one task."""
    count: int = 0
    """Tasks that it changes."""
    ids: tuple[str, ...] = ()
    seen: str
    """Send it back with the operation: nothing is applied where that would now do something else."""


def shown_operations(
    report: OperationReport, tasks: Mapping[str, Task], *, all_ids: bool
) -> tuple[ShownOperation, ...]:
    """The results of a report; of many ids a few, unless all are wanted."""

    def text(result: OperationResult) -> str:
        return operation_line(result, [tasks[each].title for each in result.ids[:MAX_NAMED] if each in tasks])

    return tuple(shown_operation(each, text(each), all_ids=all_ids) for each in report.results)


def shown_operation(result: OperationResult, text: str, *, all_ids: bool = False) -> ShownOperation:
    return ShownOperation(
        op=result.op,
        valid=result.valid,
        errors=result.errors,
        kind=kind_of(result),
        missing=missing(result),
        text=text,
        before=result.before,
        after=result.after,
        count=result.count,
        ids=result.ids if all_ids else result.ids[:MAX_DRYRUN_IDS],
        seen=target_digest(result),
    )


# From a task to work on the files


def promote_to_intent(app: "App", task: Task, intent_id: str, scope: Sequence[str]) -> None:
    """Add an active intent with the task's title and notes."""
    criteria = [line.strip() for line in task.notes.splitlines() if line.strip()]
    fields: dict[str, str | Sequence[str]] = {"name": task.title, "status": "active", "owned_scope": scope}
    app.intents.new(intent_id, fields | ({"acceptance_criteria": criteria} if criteria else {}))


def checklist_document(workspace: Workspace, task: Task, path: str) -> Document:
    """The change that adds the task as an open item at the end of a checklist in Markdown.

    Raises UsageProblem where it is on the list already.
    """
    lines = [f"- [ ] {task.title}", *(f"  {line}".rstrip() for line in task.notes.splitlines())]
    item = "\n".join(lines) + "\n"
    try:
        old = workspace.read(path)
    except PathProblem as problem:
        if problem.reason != "file_missing":
            raise
        return Document((CreateChange(path=path, text=f"# To do\n\n{item}"),))
    if any(each.strip() in (f"- [ ] {task.title}", f"- [x] {task.title}") for each in old.text.splitlines()):
        raise UsageProblem(f"{path} already has {task.title!r}.")
    start = old.text if old.text.endswith("\n") or not old.text else f"{old.text}\n"
    return Document((RewriteChange(path=path, text=start + item, base_hash=old.sha256),))


def build_text(task: Task) -> str:
    """The task as the request of a build; raises UsageProblem for one that is done."""
    if task.completed:
        raise UsageProblem(f"Task {task.id} is done already. Reopen it to build it again.")
    return f"{task.title}\n\n{task.notes}".strip()


async def start_build(app: "App", task: Task) -> str:
    """Start a verified build of the task, and complete it where that succeeds; the id of the session."""
    from handrail.app.builds.build import BUILD_ROUTE, follow_build

    text = build_text(task)
    session_id = app.new_session()
    if app.options.mode is None and app.settings.mode == "ask":
        # The request is the user's word for the edits that the checks have accepted.
        await app.send(session_id, SetMode(mode="edit"))
    message = SendMessage(text=text, route=BUILD_ROUTE)
    await app.send(session_id, message)
    app.run_in_background(
        partial(_complete_when_built, app, task, partial(follow_build, app, session_id, message))
    )
    return session_id


async def _complete_when_built(
    app: "App", task: Task, build: "Callable[..., Awaitable[BuildResult]]"
) -> None:
    with suppress(HandrailError):  # the session shows it
        result = await build(lambda _: None)
        if result.exit_status == 0:
            complete_built(app.tasks, task.id, result.session_id)


def complete_built(tasks: TaskList, task_id: str, session_id: str = "") -> OperationReport:
    """Complete a task that was built, or the occurrence that is due; an invalid result where it is gone."""
    task = tasks.get(task_id)
    op = "complete_occurrence" if task and task.repeats else "complete"
    return tasks.apply([{"op": op, "id": task_id}], session_id=session_id).report
