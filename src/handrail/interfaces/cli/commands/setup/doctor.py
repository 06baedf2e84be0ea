"""`handrail doctor`: check the setup; each problem says what to do."""

import os
import sys
from typing import Any

import click

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.config.settings import DisplaySettings
from handrail.interfaces.cli.options import options_for, turn_options
from handrail.interfaces.cli.render.styles import Line, line, wrap
from handrail.interfaces.cli.terminal import print_lines, terminal_width, use_colour
from handrail.protocol.errors import ConfigProblem

STYLES = {"ok": "good", "warn": "bold", "fail": "bad", "-": "dim"}
INDENT = " " * 18


@click.command()
@turn_options
def command(**given: Any) -> int:
    """Check model, log, disk and tools; exits with 1 when something is wrong."""
    import anyio

    from handrail.app.app import diagnose

    options = options_for(given)

    async def run() -> int:
        try:
            places = find_places(os.environ)
            display = load_settings(places, options.workspace, environ=os.environ).settings.display
        except ConfigProblem:
            display = DisplaySettings()
        failed, colour = 0, use_colour(sys.stdout, display)
        async for finding in diagnose(options):
            failed |= finding.level == "fail"
            print_lines(finding_lines(*finding, width=terminal_width(sys.stdout)), colour=colour)
        return failed

    return anyio.run(run)


def finding_lines(name: str, level: str, text: str, advice: str, *, width: int) -> list[Line]:
    """`model       ok    what was found     -> what to do`, wrapped below itself."""
    head = line(f"{name:<12}", (STYLES[level], f"{level:<6}"))
    found = (*head, *line(text))
    ways = [line(("bold", f"-> {way}")) for way in advice.splitlines()]
    if len(ways) == 1:
        return wrap((*found, *line("   "), *ways[0]), width, INDENT)
    rows = wrap(found, width, INDENT)
    return rows + [row for way in ways for row in wrap((*line(INDENT), *way), width, INDENT + "   ")]
