"""`handrail acp`: Handrail inside an editor."""

import os
import sys
from typing import Any

import click

from handrail.interfaces.cli.options import collect_garbage, options_for, turn_options
from handrail.interfaces.cli.terminal import print_text


@click.command()
@turn_options
def command(**given: Any) -> None:
    """Serve an editor by the Agent Client Protocol on standard input and output.

    Editors start this by themselves; docs/editors.md says how to set each of them up. The editor names the
    folder to work on.
    """
    import anyio

    from handrail.interfaces.acp.serve import serve

    if sys.stdin.isatty():
        print_text("handrail: editors start this command; Ctrl-C stops it.", file=sys.stderr)
    collect_garbage()
    anyio.run(serve, options_for(given, answerable=True), os.environ)
