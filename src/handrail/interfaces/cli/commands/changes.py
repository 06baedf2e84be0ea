"""`handrail changes` and `handrail diff`: what a session changed, each set or the net result."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import ask_app, session_option, workspace_option
from handrail.interfaces.cli.render import change_list
from handrail.interfaces.cli.render.styles import Line, line, plain
from handrail.interfaces.cli.terminal import (
    is_terminal,
    page,
    print_data,
    print_json,
    print_lines,
    print_text,
    terminal_width,
    use_colour,
)

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.history.changes import NetChange, ShownChange


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One change set a line, as JSON, the newest first.")
@session_option
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **given: Any) -> None:
    """List what was changed in the last session, or in the one named, the newest first.

    Each change set has a number, which `changes show`, `rewind` and `diff` take.
    """
    ctx.obj = given
    if ctx.invoked_subcommand:
        return

    def look(app: "App") -> tuple[list[Line], bool]:
        session_id = app.find_session(given["session"])
        changes = app.history.changes(session_id)
        if as_json:
            for change in reversed(changes):
                print_json(change_list.change_json(change))
            return [], False
        state = app.state(session_id)
        if not changes:
            text = f"No file was changed in {session_id} ({state.title or 'no message yet'})."
            print_text(plain(line(f"{text} `handrail sessions` lists others.")), file=sys.stderr)
        rows = change_list.change_lines(changes, state.todos, time.time(), terminal_width(sys.stdout))
        return rows, use_colour(sys.stdout, app.settings.display)

    rows, colour = ask_app(given, look)
    page(rows, colour=colour)


@command.command()
@click.argument("change", metavar="[ID]", default="")
@session_option
@click.pass_obj
def show(given: dict[str, Any], /, change: str, session: str) -> None:
    """Show a change set with its diff: by its number, its id or the end of that; the last one otherwise.

    Into a pipe goes only the diff, as `patch -p0` reads it; everything else goes to stderr.
    """

    def look(app: "App") -> tuple["ShownChange", list[Line], bool]:
        session_id = app.find_session(session or given["session"])
        found = app.history.show(session_id, change)
        changes, todos = app.history.changes(session_id), app.state(session_id).todos
        head = change_list.change_header(found, changes, todos, time.time(), terminal_width(sys.stdout))
        return found, head, use_colour(sys.stdout, app.settings.display)

    found, head, colour = ask_app(given, look)
    if is_terminal(sys.stdout):
        page([*head, *change_list.file_diff_lines(found.files, terminal_width(sys.stdout))], colour=colour)
        return
    print_lines(head, colour=False, file=sys.stderr)
    for file, diff in found.files:
        if diff is None:
            print_text(f"handrail: the contents of {file.path} are no longer kept", file=sys.stderr)
        else:
            print_data(diff.text)


@click.command()
@click.argument("since", metavar="[ID]", default="")
@session_option
@workspace_option
def diff_command(since: str, session: str, **given: Any) -> None:
    """Show what the session has changed and is still in place, or what change set ID and later ones did.

    What you wrote yourself is not in it. Into a pipe goes only the diff.
    """
    from handrail.app.history.changes import net_changes

    def look(app: "App") -> tuple[list["NetChange"], bool]:
        files = net_changes(app, app.find_session(session), since)
        return files, use_colour(sys.stdout, app.settings.display)

    files, colour = ask_app(given, look)
    if not files:
        print_text("Nothing that this session changed is still in place.", file=sys.stderr)
    elif is_terminal(sys.stdout):
        page(change_list.net_diff_lines(files, terminal_width(sys.stdout)), colour=colour)
    else:
        for _, diff, why in files:
            if why:
                print_text(f"handrail: {why}", file=sys.stderr)
            if diff:
                print_data(diff.text)
