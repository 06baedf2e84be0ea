"""`handrail tasks`: the user's own task list, in the shell."""

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from handrail.interfaces.cli.options import all_of, ask_app, options_for, run_with_app, workspace_option
from handrail.interfaces.cli.render import task_lines
from handrail.interfaces.cli.render.styles import Line, count_of
from handrail.interfaces.cli.terminal import (
    NOBODY_TO_ASK,
    can_ask,
    confirm,
    page,
    print_json,
    print_text,
    terminal_width,
    use_colour,
)
from handrail.protocol.errors import UsageProblem
from handrail.protocol.task import OperationReport, OperationResult, Task
from handrail.protocol.values import TaskFilter, to_dict

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.tasks import TaskList

Result = TypeVar("Result")
MAX_DIGITS = 20
PRIORITIES = ("low", "medium", "high", "none")
EMPTY = 'No tasks. Add one: handrail tasks add "Call the dentist" --on fri --at 9:30'
VERBS = {
    "create": "Added",
    "update": "Changed",
    "delete": "Deleted",
    "complete": "Done:",
    "complete_occurrence": "Done:",
    "bulk_update": "Changed",
    "bulk_complete": "Completed",
    "bulk_delete": "Deleted",
}

fields = all_of(
    click.option("--on", "scheduled_for", metavar="DATE", help="tomorrow, fri, 2026-12-01; none: no date."),
    click.option("--at", "time", metavar="TIME", help="Time of day: 9:30 or 7pm."),
    click.option("--priority", type=click.Choice(PRIORITIES), help="How important it is."),
    click.option(
        "--every",
        "recurrence",
        metavar="RULE",
        help="day, weekday, week, month, 'N days', monday; none: it no longer repeats.",
    ),
    click.option("--until", metavar="DATE", help="The last day; default: the end of the year."),
    click.option("--notes", metavar="TEXT", help="More about it."),
)
json_option = click.option("--json", "as_json", is_flag=True, help="As JSON.")
words_argument = click.argument("words", nargs=-1, required=True, metavar="TASK")


def with_tasks(given: dict[str, Any], do: "Callable[[TaskList, App], Result]") -> Result:
    return ask_app(given, lambda app: do(app.tasks, app))


def show(app: "App", rows: Iterable[Line]) -> None:
    page(list(rows), colour=use_colour(sys.stdout, app.settings.display))


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Your own task list, kept with this folder: what you want to do, and when.

    A task is named by its number or by words of its title. `handrail tasks undo` undoes the last change.
    """
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_tasks, as_json=False, everything=False, on=None, priority=None)


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Done tasks too.")
@click.option("--on", metavar="DATE", help="Only what is on this day.")
@click.option("--priority", type=click.Choice(PRIORITIES[:-1]), help="Only tasks of this priority.")
@json_option
@click.pass_obj
def list_tasks(
    given: dict[str, Any], everything: bool, as_json: bool, *, on: str | None, priority: str | None
) -> None:
    """List tasks by when they are due."""
    from handrail.app.tasks import agenda, find_day, on_day

    def run(tasks: "TaskList", app: "App") -> None:
        found = tasks.find(TaskFilter(priority=priority or ""))
        if on:
            day = find_day(tasks, on)
            shown = [each for each in on_day(found, day) if everything or not each.done]
            show_days(app, [(day, shown)], as_json=as_json)
        else:
            show_agenda(app, agenda(found, tasks.clock.today), everything, as_json=as_json)

    with_tasks(given, run)


def show_agenda(app: "App", groups: Sequence[Any], everything: bool, *, as_json: bool) -> None:
    shown = [group for group in groups if everything or group.heading != "Done"]
    if as_json:
        for group in shown:
            for each in group.tasks:
                print_json(to_dict(each.task) | {"day": str(each.day or ""), "group": group.heading.lower()})
        return
    if not shown:
        done = sum(len(group.tasks) for group in groups)
        print_text(f"Nothing to do; {count_of(done, 'task')} done (--all)." if done else EMPTY)
    show(app, task_lines.agenda_lines(shown, app.tasks.clock.today, terminal_width(sys.stdout)))


@command.command()
@click.argument("words", nargs=-1, required=True, metavar="TITLE")
@fields
@json_option
@click.pass_obj
def add(given: dict[str, Any], /, words: tuple[str, ...], as_json: bool, **values: Any) -> int:
    """Add a task.

    handrail tasks add "Water the plants" --every "3 days" --on today
    """
    from handrail.app.tasks import named_weekday

    wanted = given_fields(values) | {"op": "create", "title": " ".join(words)}
    repeats = wanted.get("recurrence", "none")
    if repeats != "none" and "scheduled_for" not in wanted and not named_weekday(repeats):
        wanted["scheduled_for"] = "today"
    return with_tasks(given, lambda tasks, _: apply(tasks, [wanted], as_json=as_json))


@command.command()
@words_argument
@click.option("--title", metavar="TEXT", help="Another title.")
@fields
@json_option
@click.pass_obj
def edit(given: dict[str, Any], /, words: tuple[str, ...], as_json: bool, **values: Any) -> int:
    """Change a task.

    handrail tasks edit 12 --on "next week" --priority high
    """
    from handrail.app.tasks import find_task

    def run(tasks: "TaskList", _: "App") -> int:
        task = find_task(tasks, " ".join(words))
        if not (wanted := given_fields(values)):
            raise UsageProblem(f"Say what changes, such as --on fri or --title TEXT: {task.id} {task.title}")
        if "until" in wanted and "recurrence" not in wanted:
            wanted["recurrence"] = task_lines.repeat_text(task.recurrence)
        return apply(tasks, [{"op": "update", "id": task.id, **wanted}], as_json=as_json)

    return with_tasks(given, run)


def given_fields(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@command.command()
@words_argument
@click.option("--on", "day", metavar="DATE", help="Of a repeating task: which day; default: the one due.")
@click.option("--not", "reopen", is_flag=True, help="It is not done after all.")
@json_option
@click.pass_obj
def done(
    given: dict[str, Any], words: tuple[str, ...], day: str | None, *, reopen: bool, as_json: bool
) -> int:
    """Complete tasks, by numbers or by words.

    Of a repeating one, the occurrence that is due.
    """

    def operation(task: Task) -> dict[str, Any]:
        if reopen:
            return {"op": "reopen", "id": task.id, **({"date": day} if day and task.repeats else {})}
        if task.repeats:
            return {"op": "complete_occurrence", "id": task.id, **({"date": day} if day else {})}
        return {"op": "complete", "id": task.id}

    return with_tasks(
        given,
        lambda tasks, _: apply(tasks, [operation(task) for task in named(tasks, words)], as_json=as_json),
    )


@command.command()
@words_argument
@click.option("--yes", is_flag=True, help="Do not ask a second time about many tasks.")
@json_option
@click.pass_obj
def delete(given: dict[str, Any], words: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Delete tasks, by numbers or by words."""

    def run(tasks: "TaskList", _: "App") -> int:
        wanted = [{"op": "delete", "id": task.id} for task in named(tasks, words)]
        return apply(tasks, wanted, as_json=as_json, confirmed=yes)

    return with_tasks(given, run)


def named(tasks: "TaskList", words: Sequence[str]) -> list[Task]:
    """The tasks of several numbers (`3 4 7-9`), or the one that has the words."""
    from handrail.app.tasks import find_task

    numbers: list[str] = []
    for word in words:
        first, dash, last = word.lstrip("#").partition("-")
        if dash and is_number(first) and is_number(last):
            wanted = range(int(first), int(last) + 1)
            numbers += [task.id for task in tasks.all() if task.number in wanted]
        elif is_number(first) and not dash:
            numbers.append(first)
        else:
            return [find_task(tasks, " ".join(words))]
    if not numbers:
        raise UsageProblem(f"There is no task {' '.join(words)}. `handrail tasks` lists them.")
    return [find_task(tasks, number) for number in dict.fromkeys(numbers)]


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < MAX_DIGITS


def apply(tasks: "TaskList", operations: list[Any], *, as_json: bool, confirmed: bool = False) -> int:
    """Apply what the user asked for, all or nothing, and say what was done."""
    report = tasks.dry_run(operations)
    if wrong := [reason for result in report.results for reason in result.errors]:
        raise UsageProblem("\n".join(wrong))
    if report.warnings and not confirmed:
        if not can_ask(sys.stderr):
            print_text(f"{' '.join(report.warnings)} Nobody can be asked: use --yes.", file=sys.stderr)
            return NOBODY_TO_ASK
        if not confirm(f"{' '.join(report.warnings)} Are you sure?", err=True):
            print_text("Nothing was changed.", file=sys.stderr)
            return 1
    applied = tasks.apply(operations)
    if as_json:
        print_json(to_dict(applied.report))
        return 0
    for text in report_lines(applied.report, tasks):
        print_text(text)
    return 0


def report_lines(report: OperationReport, tasks: "TaskList") -> Iterable[str]:
    for result in report.results:
        if result.valid:
            yield _result_line(result, tasks)
    if report.summary.deleted:
        yield "`handrail tasks undo` gives back what was deleted."


def _result_line(result: OperationResult, tasks: "TaskList") -> str:
    task = result.after or result.before
    verb = VERBS[result.op["op"]]
    if task is None:
        return f"{verb} {count_of(result.count, 'task')}"
    if result.op["op"] == "complete_occurrence":
        before = result.before.completed_occurrences if result.before else ()
        (day,) = set(task.completed_occurrences) ^ set(before)
        verb = verb if day in task.completed_occurrences else "Open again:"
        shown = task_lines.day_text(date.fromisoformat(day), tasks.clock.today)
        return f"{verb} {task.id} {task.title}, {shown}"
    return f"{verb} {task_lines.task_text(task, tasks.clock.today)}"


@command.command()
@words_argument
@json_option
@click.pass_obj
def search(given: dict[str, Any], words: tuple[str, ...], as_json: bool) -> None:
    """Find tasks that have all the words, done ones too."""
    from handrail.app.tasks import dated

    def run(tasks: "TaskList", app: "App") -> None:
        found = tasks.search(" ".join(words))
        if as_json:
            for task in found:
                print_json(to_dict(task))
        elif not found:
            print_text("No task has these words.")
        else:
            today = tasks.clock.today
            shown = [dated(task, today) for task in found]
            show(app, task_lines.found_lines(shown, today, terminal_width(sys.stdout)))

    with_tasks(given, run)


@command.command("show")
@words_argument
@json_option
@click.pass_obj
def show_task(given: dict[str, Any], words: tuple[str, ...], as_json: bool) -> None:
    """Show one task in full."""
    from handrail.app.tasks import dated, find_task

    def run(tasks: "TaskList", app: "App") -> None:
        task = find_task(tasks, " ".join(words))
        day = dated(task, tasks.clock.today).day
        if as_json:
            print_json(to_dict(task) | {"day": str(day or "")})
        else:
            show(app, task_lines.task_details(task, day, tasks.clock.today))

    with_tasks(given, run)


@command.command("week")
@click.argument("words", nargs=-1, metavar="[DATE]")
@json_option
@click.pass_obj
def show_week(given: dict[str, Any], words: tuple[str, ...], as_json: bool) -> None:
    """Show a week from Monday to Sunday.

    With what repeats: this week, or that of a date.
    """
    from handrail.app.tasks import find_day, week

    def run(tasks: "TaskList", app: "App") -> None:
        day = find_day(tasks, " ".join(words)) if words else tasks.clock.today
        show_days(app, week(tasks.all(), day), as_json=as_json)

    with_tasks(given, run)


def show_days(app: "App", days: Sequence[Any], *, as_json: bool) -> None:
    if as_json:
        for day, found in days:
            rows = [to_dict(each.task) | {"done": each.done} for each in found]
            print_json({"day": str(day), "tasks": rows})
        return
    show(app, task_lines.week_lines(days, app.tasks.clock.today, terminal_width(sys.stdout)))


@command.command()
@json_option
@click.pass_obj
def undo(given: dict[str, Any], as_json: bool) -> None:
    """Undo the last change of the list; again: the one before it."""

    def run(tasks: "TaskList", _: "App") -> None:
        undone = tasks.undo()
        if as_json:
            print_json({"change_id": undone.change_id, "changes": [to_dict(each) for each in undone.changes]})
            return
        for text in task_lines.undone_lines(undone, tasks.clock.today):
            print_text(text)

    with_tasks(given, run)


@command.command()
@words_argument
@click.option("--intent", "intent_id", metavar="ID", help="Make it a new intent of this id.")
@click.option("--scope", metavar="PATTERN", multiple=True, help="What the intent owns; repeatable.")
@click.option("--checklist", metavar="FILE", help="Add it to a checklist in Markdown, such as CHECKLIST.md.")
@click.pass_obj
def promote(
    given: dict[str, Any],
    words: tuple[str, ...],
    intent_id: str | None,
    *,
    scope: tuple[str, ...],
    checklist: str | None,
) -> int:
    """Make a task an intent, or an item of a checklist."""
    if bool(intent_id) == bool(checklist):
        raise UsageProblem("Say what it becomes: --intent ID, or --checklist FILE.")

    async def run(app: "App") -> int:
        from handrail.app.tasks import checklist_document, find_task, promote_to_intent
        from handrail.interfaces.cli.commands.edit import apply_document

        task = find_task(app.tasks, " ".join(words))
        if checklist:
            document = checklist_document(app.workspace, task, checklist)
            return await apply_document(app, document, f"task {task.id} to {checklist}")
        promote_to_intent(app, task, intent_id or "", scope)
        print_text(f"Added the intent {intent_id}: {task.title}.")
        return 0

    return run_with_app(given, run)


@command.command()
@words_argument
@click.option("--model", metavar="NAME", help="The model, as connection/name.")
@click.pass_obj
def build(given: dict[str, Any], words: tuple[str, ...], model: str | None) -> int:
    """Do a task by a verified build.

    As `handrail build` does it; where that succeeds, the task is completed.
    """
    import anyio

    from handrail.app.tasks import build_text, complete_built, find_task
    from handrail.interfaces.cli.commands.build import run_build

    task = with_tasks(given, lambda tasks, _: find_task(tasks, " ".join(words)))
    run = partial(run_build, as_json=False, kept=())
    status = anyio.run(run, options_for({**given, "model": model}), build_text(task))
    if status == 0:
        lines = with_tasks(given, lambda tasks, _: list(report_lines(complete_built(tasks, task.id), tasks)))
        print_text("\n".join(lines))
    else:
        print_text(f"Task {task.id} stays open.", file=sys.stderr)
    return status
