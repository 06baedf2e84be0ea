"""`handrail stats`: which routes messages took, how builds ended."""

from typing import Any

import click

from handrail.interfaces.cli.options import ask_app, workspace_option
from handrail.interfaces.cli.terminal import print_json, print_text

ROW = "{:<9} {:<14} {:<11} {:>8} {:>14} {:>9}"


@click.group()
def command() -> None:
    """Figures from the log of this folder."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="One object a line.")
@workspace_option
def router(as_json: bool, **given: Any) -> None:
    """Which routes messages took, and what came of it.

    Whether rules, a model or your answer decided, how sure that was, whether files were changed, and how
    often you chose another route after it.
    """
    from handrail.app.history.sessions import routing_counts

    rows = ask_app(given, routing_counts)
    if as_json:
        for row in rows:
            print_json(row._asdict())
    elif not rows:
        print_text("No message was routed here yet. Your next one will be, unless auto_route is off.")
    else:
        print_text(ROW.format("by", "route", "confidence", "messages", "changed files", "rerouted"))
        for row in rows:
            route = row.route or "(asked you)"
            print_text(ROW.format(row.by, route, row.band or "-", row.total, row.applied, row.corrected))


@command.command()
@click.option("--json", "as_json", is_flag=True, help="One object.")
@workspace_option
def build(as_json: bool, **given: Any) -> None:
    """How builds ended: at the first attempt, after corrections, or with a question to you."""
    from handrail.app.builds.build import build_counts

    found = ask_app(given, lambda app: build_counts(app.log))
    if as_json:
        print_json(found._asdict())
    elif not found.builds:
        print_text('Nothing was built here yet: handrail build "TASK"')
    else:
        ends = ("complete", "unverified", "failed", "escalated", "cancelled")
        told = ", ".join(f"{count} {end}" for end in ends if (count := getattr(found, end)))
        print_text(f"builds: {found.builds} ({told})")
        print_text(f"complete at the first attempt: {found.at_first} of {found.builds}")
        print_text(f"issues corrected: {found.corrected} of {found.issues}")
        print_text(f"needed you: {found.needed_user} of {found.builds}")
        usd = f"{found.cost_usd:.4f} USD" if found.cost_usd is not None else "price unknown"
        print_text(f"spent: {found.tokens:,} tokens, {usd}")
