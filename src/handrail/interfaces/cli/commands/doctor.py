"""`handrail doctor`: what works and what to do about the rest."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.config.settings import DisplaySettings
from handrail.interfaces.cli.options import options_for, turn_options
from handrail.interfaces.cli.styles import BAD, BOLD, DIM, GOOD, Line, ansi, line, wrap
from handrail.interfaces.cli.terminal import takes_colour, width_of
from handrail.protocol.errors import ConfigProblem

if TYPE_CHECKING:
    from handrail.engine.doctor import Finding

STYLES = {"ok": GOOD, "warn": BOLD, "fail": BAD, "-": DIM}
INDENT = " " * 17


@click.command()
@turn_options
def command(**given: Any) -> int:
    """Check model, log, disk, tools; the status is 1 when something is wrong."""
    import anyio

    from handrail.engine.doctor import diagnose

    options = options_for(given)

    async def run() -> int:
        failed, colour = 0, takes_colour(sys.stdout, display(options.workspace), os.environ)
        async for finding in diagnose(
            options.workspace, model=options.model, flags=options.flags(), environ=os.environ
        ):
            failed |= finding.level == "fail"
            for row in finding_lines(finding, width_of(sys.stdout)):
                print(ansi(row, colour=colour), flush=True)
        return failed

    return anyio.run(run)


def display(workspace: Path) -> DisplaySettings:
    """How to write; the defaults where the settings are what is wrong."""
    try:
        return load_settings(find_places(os.environ), workspace, environ=os.environ).settings.display
    except ConfigProblem:
        return DisplaySettings()


def finding_lines(finding: "Finding", width: int) -> list[Line]:
    """`model      ok    what was found     -> what to do`, below itself where it is long or in parts."""
    head = line(f"{finding.name:<11}", (STYLES[finding.level], f"{finding.level:<6}"))
    found = (*head, *line(finding.text))
    ways = finding.advice.splitlines()
    if len(ways) > 1:
        below = [
            row for way in ways for row in wrap(line(INDENT, (BOLD, f"-> {way}")), width, INDENT + "   ")
        ]
        return wrap(found, width, INDENT) + below
    advice = line((BOLD, f"   -> {ways[0]}")) if ways else ()
    return wrap((*found, *advice), width, INDENT)
