"""`handrail diff`: what a session's changes amount to now."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.change_list import net_lines
from handrail.interfaces.cli.opening import named, opened
from handrail.interfaces.cli.options import options_for, session_option, workspace_option
from handrail.interfaces.cli.paging import page
from handrail.interfaces.cli.styles import clean
from handrail.interfaces.cli.terminal import is_terminal, takes_colour, width_of

if TYPE_CHECKING:
    from handrail.engine.history import NetFile


@click.command()
@click.argument("since", metavar="[ID]", default="")
@session_option
@workspace_option
def command(since: str, session: str, **given: Any) -> None:
    """Show what the session has changed and still stands, or what change set ID and later ones did.

    What you wrote yourself is not in it. Into a pipe goes the diff alone.
    """
    import anyio

    async def run() -> tuple[list["NetFile"], bool]:
        async with opened(options_for(given)) as app:
            session_id = named(app, session)
            changes = app.history.changes(session_id)
            files = app.history.net(session_id, since or "1") if changes or since else []
            return files, takes_colour(sys.stdout, app.settings.display, os.environ)

    files, colour = anyio.run(run)
    if not files:
        print("Nothing that this session changed is in place.", file=sys.stderr)
    elif is_terminal(sys.stdout):
        page(net_lines(files, width_of(sys.stdout)), colour=colour)
    else:
        for _, diff, why in files:
            if why:
                print(clean(f"handrail: {why}"), file=sys.stderr)
            if diff:
                print(diff.text)
