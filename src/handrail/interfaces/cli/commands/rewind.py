"""`handrail rewind ID`: go back to before a change set."""

from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import deciding_options, session_option, workspace_option
from handrail.interfaces.cli.taking_back import Part, Said, take_back
from handrail.protocol.commands import Redo, Rewind

if TYPE_CHECKING:
    from handrail.app import App


@click.command()
@click.argument("change", metavar="[ID]", default="")
@click.option("--turn", type=click.IntRange(min=1), help="Instead of ID: to before this turn.")
@click.option("--files", "part", flag_value="files", help="Files go back, the conversation goes on.")
@click.option("--conversation", "part", flag_value="conversation", help="The conversation, not the files.")
@click.option("--both", "part", flag_value="both", help="Both.")
@click.option("--yes", is_flag=True, help="Do not ask; with --files, --conversation or --both.")
@deciding_options
@session_option
@workspace_option
def command(
    change: str,
    turn: int | None,
    part: Part | None,
    yes: bool,
    *,
    dry_run: bool,
    accept: tuple[str, ...],
    leave: tuple[str, ...],
    session: str,
    **given: Any,
) -> int:
    """Go back to before change set ID, or before a turn: that and all later ones are undone.

    ID is a number from `handrail changes`, an id, the end of one, or the id of a message. What would be done
    is shown first. What you or others wrote since is never lost: where it does not overlap it is merged, and
    where it does the file stays as it is. `handrail redo` undoes a rewind.
    """
    if bool(change) == bool(turn):
        raise click.UsageError("Say where to: a number from `handrail changes`, or --turn N.")
    if yes and not part:
        raise click.UsageError("--yes has to know what goes back: say --files, --conversation or --both.")
    said = Said(session, part, yes=yes, dry_run=dry_run, accept=accept, leave=leave)

    def wish(app: "App", session_id: str) -> Rewind | Redo:
        if turn:
            return app.history.before_turn(session_id, turn)
        to = change if change.startswith("m_") else app.history.find(session_id, change).id
        return Rewind(to=to, files=True, conversation=True)

    return take_back(given, said, wish)
