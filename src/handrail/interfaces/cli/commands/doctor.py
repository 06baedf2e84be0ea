"""`handrail doctor`: what works and what to do about the rest."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import options_for, turn_options
from handrail.interfaces.cli.styles import BAD, BOLD, DIM, GOOD, Line, ansi, line, wrap
from handrail.interfaces.cli.terminal import takes_colour, width_of

if TYPE_CHECKING:
    from handrail.engine.doctor import Finding

STYLES = {"ok": GOOD, "warn": BOLD, "fail": BAD, "-": DIM}
INDENT = " " * 17


@click.command()
@turn_options
def command(**given: Any) -> int:
    """Check model, log, disk, tools; the status is 1 when something is wrong."""
    import anyio

    from handrail.app import open_app

    async def run() -> int:
        failed = 0
        async with open_app(options_for(given)) as app:
            colour = takes_colour(sys.stdout, app.settings.display, os.environ)
            async for finding in app.doctor():
                failed |= finding.level == "fail"
                for row in finding_lines(finding, width_of(sys.stdout)):
                    print(ansi(row, colour=colour), flush=True)
        return failed

    return anyio.run(run)


def finding_lines(finding: "Finding", width: int) -> list[Line]:
    """`model      ok    what was found     -> what to do`, below itself where it is long."""
    head = line(f"{finding.name:<11}", (STYLES[finding.level], f"{finding.level:<6}"))
    advice = line((BOLD, f"   -> {finding.advice}")) if finding.advice else ()
    return wrap((*head, *line(finding.text), *advice), width, INDENT)
