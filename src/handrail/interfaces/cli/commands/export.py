"""`handrail export ID FILE`: a session as one file."""

import sys
from typing import Any

import click

from handrail.interfaces.cli.options import file_named, options_for, workspace_option


@click.command()
@click.argument("session")
@click.argument("file")
@workspace_option
def command(session: str, file: str, **given: Any) -> None:
    """Write a session, with everything that belongs to it, to FILE."""
    import anyio

    from handrail.app import open_app

    target = file_named(file)

    async def run() -> None:
        async with open_app(options_for(given)) as app:
            session_id = app.find_session(session)
            app.export(session_id, target)
            print(f"{session_id} is in {file}; `handrail import` reads it.", file=sys.stderr)

    anyio.run(run)
