"""`handrail fork ID`: a copy of a session to go on with."""

from typing import Any

import click

from handrail.interfaces.cli.opening import named, opened
from handrail.interfaces.cli.options import options_for, workspace_option


@click.command()
@click.argument("session")
@click.option("--turn", type=click.IntRange(min=1), help="As it was after this turn.")
@workspace_option
def command(session: str, turn: int | None, **given: Any) -> None:
    """Make a new session that begins as a copy of another, and print its id."""
    import anyio

    async def run() -> None:
        async with opened(options_for(given)) as app:
            print(app.fork(named(app, session), turn))

    anyio.run(run)
