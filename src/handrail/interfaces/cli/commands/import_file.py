"""`handrail import FILE`: bring in an exported session."""

from typing import Any

import click

from handrail.interfaces.cli.opening import opened
from handrail.interfaces.cli.options import file_named, options_for, workspace_option


@click.command()
@click.argument("file")
@workspace_option
def command(file: str, **given: Any) -> None:
    """Bring in a session that was exported, and print its id."""
    import anyio

    source = file_named(file)

    async def run() -> None:
        async with opened(options_for(given)) as app:
            print(app.import_session(source))

    anyio.run(run)
