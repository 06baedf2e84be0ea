"""`handrail stats`: what is on record about Handrail's own decisions."""

import json
from typing import Any

import click

from handrail.interfaces.cli.opening import opened
from handrail.interfaces.cli.options import options_for, workspace_option

ROW = "{:<9} {:<14} {:<11} {:>8} {:>14} {:>9}"


@click.group()
def command() -> None:
    """Figures from the log of this folder."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="One object a line.")
@workspace_option
def router(as_json: bool, **given: Any) -> None:
    """Where messages went, and what came of it.

    Whether rules, a model or your answer decided, how sure that was, whether files were changed, and how
    often you chose another route after it.
    """
    import anyio

    from handrail.engine.routing.outcomes import counted, outcomes

    async def run() -> None:
        async with opened(options_for(given)) as app:
            rows = counted(outcomes(app.log))
        if as_json:
            for row in rows:
                print(json.dumps(row._asdict()))
            return
        if not rows:
            print("No message was routed here yet: that begins with your next one, unless auto_route is off.")
            return
        print(ROW.format("by", "route", "confidence", "messages", "changed files", "rerouted"))
        for row in rows:
            where = row.route or "(asked you)"
            print(ROW.format(row.by, where, row.band or "-", row.total, row.applied, row.corrected))

    anyio.run(run)
