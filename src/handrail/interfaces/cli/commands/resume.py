"""`handrail resume [ID]`: go on with a session."""

from typing import Any

import click

from handrail.interfaces.cli.headless import headless
from handrail.interfaces.cli.options import options_for, text_of, turn_options
from handrail.interfaces.cli.talking import talk
from handrail.protocol.commands import SendMessage


@click.command()
@click.argument("session", default="")
@click.option("--message", metavar="TEXT", help="Say this, wait for the turn to end, and leave.")
@click.option("--json", "as_json", is_flag=True, help="With --message: one event a line on stdout.")
@turn_options
def command(session: str, message: str | None, as_json: bool, **given: Any) -> int:
    """Open a session again: by its id, the start of it, or words of its title; the last one otherwise."""
    if message is not None:
        return headless(
            options_for(given), SendMessage(text=text_of(message)), session=session, as_json=as_json
        )
    if as_json:
        raise click.UsageError("--json goes with --message.")
    talk(options_for(given, answerable=True), session=session)
    return 0
