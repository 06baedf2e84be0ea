"""`handrail changes`: what was changed in a session, and each change set with its diff."""

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.change_list import as_json, change_lines, numbers_of, shown_files, shown_head
from handrail.interfaces.cli.opening import named, opened
from handrail.interfaces.cli.options import options_for, session_option, workspace_option
from handrail.interfaces.cli.paging import page
from handrail.interfaces.cli.styles import Line, clean, line, plain
from handrail.interfaces.cli.terminal import is_terminal, takes_colour, width_of

if TYPE_CHECKING:
    from handrail.engine.history import ShownChange


@click.group(invoke_without_command=True)
@click.option("--json", "json_lines", is_flag=True, help="One change set a line, as JSON, the newest first.")
@session_option
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, json_lines: bool, **given: Any) -> None:
    """List what was changed in the last session, or in the one named, the newest first.

    Each change set has a number, by which `changes show`, `rewind` and `diff` know it.
    """
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        listed(given, json_lines=json_lines)


def listed(given: dict[str, Any], *, json_lines: bool) -> None:
    import anyio

    async def run() -> tuple[list[Line], bool]:
        async with opened(options_for(given)) as app:
            session_id = named(app, given["session"])
            changes = app.history.changes(session_id)
            if json_lines:
                for change in reversed(changes):
                    print(json.dumps(as_json(change)))
                return [], False
            state = app.state(session_id)
            if not changes:
                told = f"No file was changed in {session_id} ({state.title or 'nothing said'})."
                print(plain(line(f"{told} `handrail sessions` lists others.")), file=sys.stderr)
            rows = change_lines(changes, state.todos, time.time(), width_of(sys.stdout))
            return rows, takes_colour(sys.stdout, app.settings.display, os.environ)

    rows, colour = anyio.run(run)
    page(rows, colour=colour)


@command.command()
@click.argument("change", metavar="[ID]", default="")
@session_option
@click.pass_obj
def show(given: dict[str, Any], /, change: str, session: str) -> None:
    """Show a change set with its diff: by its number, its id or the end of that; the last one otherwise.

    Into a pipe goes the diff alone, as `patch -p0` reads it; what else there is to know goes to stderr.
    """
    import anyio

    async def run() -> tuple["ShownChange", list[Line], bool]:
        async with opened(options_for(given)) as app:
            session_id = named(app, session or given["session"])
            found = app.history.show(session_id, change)
            numbers = numbers_of(app.history.changes(session_id))
            todos = app.state(session_id).todos
            head = shown_head(found, numbers, todos, time.time(), width_of(sys.stdout))
            return found, head, takes_colour(sys.stdout, app.settings.display, os.environ)

    found, head, colour = anyio.run(run)
    if is_terminal(sys.stdout):
        page([*head, *shown_files(found.files, width_of(sys.stdout))], colour=colour)
        return
    for row in head:
        print(plain(row), file=sys.stderr)
    for file, diff in found.files:
        if diff is None:
            print(clean(f"handrail: the contents of {file.path} are not kept any more"), file=sys.stderr)
        else:
            print(diff.text)
