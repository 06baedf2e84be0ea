"""`handrail redo`: undo the last rewind or undo."""

from typing import Any

import click

from handrail.interfaces.cli.options import deciding_options, session_option, workspace_option
from handrail.interfaces.cli.taking_back import Said, take_back
from handrail.protocol.commands import Redo


@click.command()
@deciding_options
@session_option
@workspace_option
def command(
    dry_run: bool, accept: tuple[str, ...], leave: tuple[str, ...], session: str, **given: Any
) -> int:
    """Bring back what the last rewind or undo took back."""
    said = Said(session, asks=False, dry_run=dry_run, accept=accept, leave=leave)
    return take_back(given, said, lambda _app, _session_id: Redo())
