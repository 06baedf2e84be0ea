"""`handrail build TASK`: a verified build; its stages on stderr as they happen, the result on stdout."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.activity import StatusLine
from handrail.interfaces.cli.commands.run import cancel_on_signals, read_stdin
from handrail.interfaces.cli.completion import complete_session
from handrail.interfaces.cli.options import message_text, opened_app, options_for, turn_options
from handrail.interfaces.cli.render.build_lines import BuildLines, result_lines
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol import events
from handrail.protocol.commands import SetMode
from handrail.protocol.errors import HandrailError
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.app import App, Options
    from handrail.app.builds.build import BuildResult

LAST = "last"


@click.command()
@click.argument("task", nargs=-1)
@click.option(
    "--accept",
    metavar="[SESSION]",
    is_flag=False,
    flag_value=LAST,
    help="Apply the proposal of a build that is not complete, of the last one by default.",
    shell_complete=complete_session,
)
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object on stdout.")
@click.option("--accept-unverified", is_flag=True, help="Apply a result that no check could verify, too.")
@click.option("--keep-failed", is_flag=True, help="Apply the best files of a build that failed, too.")
@click.option("--max-usd", type=click.FloatRange(min=0), help="End the build at this cost.")
@click.option("--max-steps", type=click.IntRange(min=1), help="End the build after so many requests.")
@click.option("--trust", is_flag=True, help="Trust the workspace's own settings for this run.")
@turn_options
def command(
    task: tuple[str, ...],
    accept: str | None,
    as_json: bool,
    *,
    accept_unverified: bool,
    keep_failed: bool,
    **given: Any,
) -> int:
    """Do TASK and keep the result only if the project's own checks agree. `-` reads it from stdin.

    Plan, audit, code and checks happen in a copy of the workspace; only a verified result is applied, as one
    change set; any other is shown as a proposal, which --accept applies. Calling this is your word that the
    project's code may run in the sandbox, as with `handrail verify`. Exits with 0 only where it is complete,
    5 where nothing could verify it, 6 where you must decide.
    """
    import anyio

    if accept is not None:
        if task:
            raise click.UsageError("--accept takes no TASK: it applies what was built before.")
        return anyio.run(accept_stored, options_for(given), "" if accept == LAST else accept, as_json)
    if not task:
        raise click.UsageError('Missing TASK: handrail build "add retry to the http client"')
    words = message_text(read_stdin() if task == ("-",) else " ".join(task))
    kept = ["unverified"] * accept_unverified + ["failed", "escalated"] * keep_failed
    return anyio.run(run_build, options_for(given), words, as_json, kept)


async def run_build(options: "Options", task: str, as_json: bool, kept: Sequence[str]) -> int:
    import anyio

    from handrail.app.builds.build import accept_proposal, build_task, proposal_for

    async with opened_app(options) as app:
        if notice := await app.check_mode():
            print_text(f"handrail: {notice}", file=sys.stderr)
        await app.chosen_model()
        live = terminal.is_terminal(sys.stderr) and not as_json
        colour = terminal.use_colour(sys.stderr, app.settings.display)
        status_line = StatusLine(live=live, colour=colour)
        shown = BuildLines(terminal.terminal_width(sys.stderr), app.log.blob)
        session_id = app.new_session()
        if options.mode is None and app.settings.mode == "ask":
            # The command is the user's word for the edits that the checks have accepted.
            await app.send(session_id, SetMode(mode="edit"))

        def saw(item: events.Recorded | events.Delta) -> None:
            if isinstance(item, events.Delta):
                status_line.heard(item)
                return
            status_line.saw(item)
            if not as_json:
                terminal.print_lines(shown.saw(item.event), colour=colour, file=sys.stderr)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_on_signals, app, session_id)
            tasks.start_soon(status_line.tick)
            result = await build_task(app, task, session_id=session_id, saw=saw)
            tasks.cancel_scope.cancel()
        diff = ""
        if result.proposed and not result.files:
            try:
                proposal = proposal_for(app, result)
                diff = proposal.diff
                if result.state in kept:
                    result = await accept_proposal(app, proposal)
            except HandrailError as problem:
                result = replace(result, detail=f"{result.detail} {problem}")
        show(app, result, as_json)
        if result.accept and not as_json:
            print_text(f"\n{diff}\n")
            print_text(f"accept: {result.accept}")
        return result.exit_status


async def accept_stored(options: "Options", session: str, as_json: bool) -> int:
    """Apply the proposal of an earlier build; on a terminal, show its diff and ask first."""
    from handrail.app.builds.build import accept_proposal, find_proposal

    async with opened_app(options) as app:
        proposal = find_proposal(app, app.find_session(session) if session else "")
        if not as_json:
            print_text(proposal.diff)
        if not as_json and terminal.can_ask(sys.stderr):
            question = f"Apply this? The build is {proposal.result.state}."
            if not terminal.confirm(question, default=False, err=True):
                print_text("Nothing was changed.", file=sys.stderr)
                return proposal.result.exit_status
        result = await accept_proposal(app, proposal)
        show(app, result, as_json)
        return result.exit_status


def show(app: "App", result: "BuildResult", as_json: bool) -> None:
    """The result on stdout, as lines or as JSON."""
    if as_json:
        print_json({**to_dict(result), "undo": result.undo, "exit_status": result.exit_status}, indent=2)
        return
    colour = terminal.use_colour(sys.stdout, app.settings.display)
    terminal.print_lines(result_lines(result, terminal.terminal_width(sys.stdout)), colour=colour)
