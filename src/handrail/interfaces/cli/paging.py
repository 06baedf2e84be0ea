"""Text that may be long: in a terminal page by page, else as it is."""

import shutil
import sys

import click

from handrail.interfaces.cli.styles import Line, ansi
from handrail.interfaces.cli.terminal import is_terminal


def page(rows: list[Line], *, colour: bool) -> None:
    """Write lines; with the user's pager where a person reads them and the screen is too short."""
    text = "".join(f"{ansi(row, colour=colour)}\n" for row in rows)
    tall = len(rows) >= shutil.get_terminal_size().lines
    if tall and is_terminal(sys.stdout) and is_terminal(sys.stdin):
        # None lets it ask the pager whether colours pass.
        click.echo_via_pager(text, color=None if colour else False)
    else:
        print(text, end="")
