"""`handrail undo`: take back the last change set."""

from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.going_back import last_applied
from handrail.interfaces.cli.options import deciding_options, session_option, workspace_option
from handrail.interfaces.cli.taking_back import Said, take_back
from handrail.protocol.commands import Redo, Rewind

if TYPE_CHECKING:
    from handrail.app import App


@click.command()
@click.argument("change", metavar="[ID]", default="")
@deciding_options
@session_option
@workspace_option
def command(
    change: str, dry_run: bool, accept: tuple[str, ...], leave: tuple[str, ...], session: str, **given: Any
) -> int:
    """Take back the last change set that is in place, or the one named, and no other.

    It is done at once, unless somebody else changed a file since; `handrail redo` undoes it.
    """
    said = Said(session, asks=False, dry_run=dry_run, accept=accept, leave=leave)

    def wish(app: "App", session_id: str) -> Rewind | Redo:
        changes = app.history.changes(session_id)
        found = app.history.find(session_id, change) if change else last_applied(changes)
        return Rewind(to=found.id, only=True)

    return take_back(given, said, wish)
