"""`handrail build TASK`: a verified build; its stages on stderr as they happen, the result on stdout."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.activity import StatusLine
from handrail.interfaces.cli.commands.run import cancel_on_signals, read_stdin
from handrail.interfaces.cli.options import message_text, opened_app, options_for, turn_options
from handrail.interfaces.cli.render.build_lines import BuildLines, result_lines
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol import events
from handrail.protocol.commands import SetMode
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.app import App, Options
    from handrail.app.builds.build import BuildResult


@click.command()
@click.argument("task", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object on stdout.")
@click.option("--accept-unverified", is_flag=True, help="Apply a result that no check could verify, too.")
@click.option("--keep-failed", is_flag=True, help="Apply the best files of a build that failed, too.")
@click.option("--max-usd", type=click.FloatRange(min=0), help="End the build at this cost.")
@click.option("--max-steps", type=click.IntRange(min=1), help="End the build after so many requests.")
@click.option("--trust", is_flag=True, help="Trust the workspace's own settings for this run.")
@turn_options
def command(
    task: tuple[str, ...], as_json: bool, *, accept_unverified: bool, keep_failed: bool, **given: Any
) -> int:
    """Do TASK and keep the result only if the project's own checks agree. `-` reads it from stdin.

    Plan, audit, code and checks happen in a copy of the workspace; only a verified result is applied, as one
    change set. Calling this is your word that the project's code may run in the sandbox, as with `handrail
    verify`. Exits with 0 only where it is complete, 5 where nothing could verify it, 6 where you must decide.
    """
    import anyio

    words = message_text(read_stdin() if task == ("-",) else " ".join(task))
    kept = ["unverified"] * accept_unverified + ["failed", "escalated"] * keep_failed
    return anyio.run(run_build, options_for(given), words, as_json, kept)


async def run_build(options: "Options", task: str, as_json: bool, kept: Sequence[str]) -> int:
    import anyio

    from handrail.app.builds.build import build_task, proposal_of

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
        if result.state in kept and proposal_of(result):
            result = await accept(app, result)
        if as_json:
            print_json({**to_dict(result), "undo": result.undo, "exit_status": result.exit_status}, indent=2)
        else:
            width = terminal.terminal_width(sys.stdout)
            out = terminal.use_colour(sys.stdout, app.settings.display)
            terminal.print_lines(result_lines(result, width), colour=out)
        return result.exit_status


async def accept(app: "App", result: "BuildResult") -> "BuildResult":
    """Apply a result on the user's word that is not complete; it stays what it is."""
    from handrail.app.builds.build import proposal_of

    document = proposal_of(result)
    if document is None:
        return result
    finished = await app.proposals.apply(document, title=f"{result.state}: {result.task}"[:80], word=None)
    if finished.status != "ok":
        return replace(result, detail=f"{result.detail} It was not applied: {finished.summary}")
    return replace(result, files=tuple(file.path for file in result.proposed))
