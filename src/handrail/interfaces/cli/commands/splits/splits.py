"""`handrail splits`: list split requests, show one, and start, pause, resume, cancel, retry or settle."""

import sys
from typing import TYPE_CHECKING, Any, get_args

import click
from msgspec import convert
from msgspec.structs import replace

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.commands.edit import read_proposal
from handrail.interfaces.cli.commands.splits.running import print_report, run_shown
from handrail.interfaces.cli.commands.splits.split import plan_in, show_plan
from handrail.interfaces.cli.options import run_with_app, workspace_option
from handrail.interfaces.cli.render.split_lines import list_line
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol.errors import UsageProblem
from handrail.protocol.subtask import Settlement, SplitCommand
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.splits.report import SplitReport

json_option = click.option("--json", "as_json", is_flag=True, help="As JSON on stdout.")
id_argument = click.argument("split_id", metavar="ID")


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Split requests of this workspace. docs/subtasks.md explains them."""
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_splits, as_json=False)


@command.command("list")
@json_option
@click.pass_obj
def list_splits(given: dict[str, Any], as_json: bool) -> int:
    """List them, the latest first."""

    async def run(app: "App") -> int:
        from handrail.app.splits.report import list_splits as found

        rows = found(app)
        if as_json:
            print_json([to_dict(each) for each in rows], indent=2)
            return 0
        if not rows:
            print_text('There is none yet. `handrail split "TASK"` makes one.', file=sys.stderr)
        colour, width = (
            terminal.use_colour(sys.stdout, app.settings.display),
            terminal.terminal_width(sys.stdout),
        )
        terminal.print_lines([list_line(each, width) for each in rows], colour=colour)
        return 0

    return run_with_app(given, run)


@command.command()
@id_argument
@click.option("--plan", "only_plan", is_flag=True, help="The plan with its estimates; --json: to edit it.")
@json_option
@click.pass_obj
def show(given: dict[str, Any], split_id: str, *, only_plan: bool, as_json: bool) -> int:
    """Show each subtask, what it waits for and cost, and conflicts with both sides."""

    async def run(app: "App") -> int:
        from handrail.app.splits.run import read_split

        if only_plan and as_json:
            print_json(to_dict(plan_in(app, split_id)), indent=2)
        elif only_plan:
            await show_plan(app, split_id, as_json=False)
        else:
            print_report(app, read_split(app, split_id), as_json=as_json)
        return 0

    return run_with_app(given, run)


@command.command()
@id_argument
@click.option("--plan", "plan_file", metavar="FILE", help="With the plan in this file in its place.")
@json_option
@click.pass_obj
def start(given: dict[str, Any], split_id: str, plan_file: str | None, as_json: bool) -> int:
    """Start a plan; one that was killed goes on."""

    async def run(app: "App") -> int:
        from handrail.app.splits.plans import change_plan, read_plan

        if plan_file:
            await change_plan(app, split_id, read_plan(read_proposal(plan_file)))
        return await run_shown(app, split_id, SplitCommand("start"), as_json=as_json)

    return run_with_app(given, run)


@command.command()
@id_argument
@click.option("--max-usd", "usd", type=click.FloatRange(min=0), help="The new limit of its whole cost.")
@click.option("--max-tokens", "tokens", type=click.IntRange(min=1), help="The new limit of all its tokens.")
@click.option("--parallel", type=click.IntRange(1, 256), help="So many at once.")
@json_option
@click.pass_obj
def resume(given: dict[str, Any], /, split_id: str, *, as_json: bool, **changed: Any) -> int:
    """Go on with one that is paused, or that was killed."""

    async def run(app: "App") -> int:
        limits = plan_in(app, split_id).limits
        new = replace(limits, **{name: value for name, value in changed.items() if value is not None})
        return await run_shown(app, split_id, SplitCommand("resume", limits=new), as_json=as_json)

    return run_with_app(given, run)


@command.command()
@id_argument
@json_option
@click.pass_obj
def pause(given: dict[str, Any], split_id: str, as_json: bool) -> int:
    """Let what runs end, and start nothing more."""
    return _tell(given, split_id, SplitCommand("pause"), as_json=as_json)


@command.command()
@id_argument
@click.argument("subtasks", nargs=-1)
@json_option
@click.pass_obj
def cancel(given: dict[str, Any], split_id: str, subtasks: tuple[str, ...], as_json: bool) -> int:
    """Cancel these subtasks and what depends on them; without one, all of it."""
    return _tell(given, split_id, SplitCommand("cancel", subtasks), as_json=as_json)


@command.command()
@id_argument
@click.argument("subtasks", nargs=-1, required=True)
@json_option
@click.pass_obj
def retry(given: dict[str, Any], split_id: str, subtasks: tuple[str, ...], as_json: bool) -> int:
    """Do these subtasks, and what depends on them, once more."""

    async def run(app: "App") -> int:
        from handrail.app.splits.run import tell_split

        told = await tell_split(app, split_id, SplitCommand("retry", subtasks))
        if told.held:
            print_told(app, told, as_json=as_json)
            return 0
        return await run_shown(app, split_id, SplitCommand("resume"), as_json=as_json)

    return run_with_app(given, run)


@command.command()
@id_argument
@click.argument("conflict")
@click.option(
    "--take", type=click.Choice([each for each in get_args(Settlement) if each in ("ours", "theirs", "both")])
)
@click.option("--text", "text_file", metavar="FILE", help="What stands there instead; `-` reads stdin.")
@click.option("--ask", is_flag=True, help="Let the model join both sides, in one more subtask.")
@json_option
@click.pass_obj
def settle(
    given: dict[str, Any],
    split_id: str,
    conflict: str,
    take: str | None,
    text_file: str | None,
    *,
    ask: bool,
    as_json: bool,
) -> int:
    """Settle a conflict: take one side or both, give the text, or let the model join them."""
    if sum((take is not None, text_file is not None, ask)) != 1:
        raise UsageProblem("Say how: --take ours, theirs or both; --text FILE; or --ask.")

    async def run(app: "App") -> int:
        from handrail.app.splits.settle import settle_conflict

        how: Settlement = convert(take or ("model" if ask else "text"), Settlement)
        text = read_proposal(text_file).decode() if text_file else None
        print_told(app, await settle_conflict(app, split_id, conflict, how, text), as_json=as_json)
        return 0

    return run_with_app(given, run)


@command.command()
@id_argument
@json_option
@click.pass_obj
def accept(given: dict[str, Any], split_id: str, as_json: bool) -> int:
    """Apply the result although the checks fail with it, or none could verify it."""

    async def run(app: "App") -> int:
        return await run_shown(app, split_id, SplitCommand("accept"), as_json=as_json)

    return run_with_app(given, run)


def _tell(given: dict[str, Any], split_id: str, wanted: SplitCommand, *, as_json: bool) -> int:
    async def run(app: "App") -> int:
        from handrail.app.splits.run import tell_split

        print_told(app, await tell_split(app, split_id, wanted), as_json=as_json)
        return 0

    return run_with_app(given, run)


def print_told(app: "App", report: "SplitReport", *, as_json: bool) -> None:
    """Print the split as it is after a command, which a process that runs it takes a moment later."""
    if report.held:
        print_text("handrail: another Handrail runs it, and has been told.", file=sys.stderr)
    print_report(app, report, as_json=as_json)
