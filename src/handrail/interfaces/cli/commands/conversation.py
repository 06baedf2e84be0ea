"""`handrail` and `handrail "TASK"`: the conversation."""

from typing import Any

import click

from handrail.interfaces.cli.options import options_for, text_of, turn_options
from handrail.interfaces.cli.talking import talk


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("words", nargs=-1)
@turn_options
def command(words: tuple[str, ...], **given: Any) -> None:
    """Open the conversation, and start with a question or task."""
    message = text_of(" ".join(words)) if words else ""
    talk(options_for(given, answerable=True), message=message)
