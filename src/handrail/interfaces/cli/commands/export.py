"""`handrail export ID FILE`: a session as one file."""

import sys
from typing import Any

import click

from handrail.interfaces.cli.opening import named, opened
from handrail.interfaces.cli.options import file_named, options_for, workspace_option


@click.command()
@click.argument("session")
@click.argument("file")
@workspace_option
def command(session: str, file: str, **given: Any) -> None:
    """Write a session, with everything that belongs to it, to FILE."""
    import anyio

    target = file_named(file)

    async def run() -> None:
        async with opened(options_for(given)) as app:
            session_id = named(app, session)
            app.export(session_id, target)
            print(f"{session_id} is in {file}; `handrail import` reads it.", file=sys.stderr)

    anyio.run(run)
