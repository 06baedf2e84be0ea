"""`handrail verify`: run the project's own checks, and say what is broken."""

import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.check_progress import PrintedProgress
from handrail.interfaces.cli.options import intent_option, run_with_app, user_path, workspace_option
from handrail.interfaces.cli.render.check_lines import name_column, verdict_lines
from handrail.interfaces.cli.render.styles import fit, line
from handrail.interfaces.cli.terminal import (
    can_ask,
    confirm,
    is_terminal,
    print_json,
    print_lines,
    print_text,
    terminal_width,
    use_colour,
)
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.app.app import App
    from handrail.app.builds.verify import Check, Verdict, VerifyOptions


@click.command()
@click.option("--changed", is_flag=True, help="Only what the files changed since the base concern.")
@click.option("--base", metavar="REV", default="", help="Compare with this commit; default: the last one.")
@click.option("--only", metavar="NAME", multiple=True, help="Only this check; repeatable.")
@click.option("--list", "listing", is_flag=True, help="Show the checks and their commands; run nothing.")
@click.option("--json", "as_data", is_flag=True, help="The result as JSON on stdout.")
@click.option("--sarif", metavar="FILE", help="Also write the issues as SARIF.")
@click.option("--junit", metavar="FILE", help="Also write the results as JUnit XML.")
@click.option("--fix", "fixing", is_flag=True, help="Show what code can correct, and ask to apply it.")
@click.option("--trust", is_flag=True, help="Trust the workspace's own settings for this run.")
@intent_option
@workspace_option
def command(
    listing: bool,
    as_data: bool,
    sarif: str | None,
    junit: str | None,
    *,
    changed: bool,
    base: str,
    only: tuple[str, ...],
    fixing: bool,
    **given: Any,
) -> int:
    """Run the checks of this project by its own tools: types, lint, tests, build.

    They run in the sandbox, without network. Calling this is your word that the project's code may run there:
    `--list` shows every command first. What failed before the change is told apart from what it broke. Exits
    with 0 where all passed, 1 where something is broken, 5 where that is not known.
    """
    from handrail.app.builds.verify import VerifyOptions, write_junit, write_sarif

    options = VerifyOptions(changed=changed, base=base, only=only)

    async def run(app: "App") -> "Verdict | list[Check]":
        if given["intent"]:
            app.intents.check_selectable(given["intent"])
        if listing:
            return await app.checks.find(options)
        verdict = await run_checks(app, options)
        if fixing and await fix(app, verdict, options):
            verdict = await run_checks(app, options)
        return verdict

    found = run_with_app(given, run)
    if isinstance(found, list):
        print_checks(found)
        return 0
    if sarif:
        write_sarif(user_path(sarif), found)
    if junit:
        write_junit(user_path(junit), found)
    if as_data:
        print_json({**to_dict(found), "exit_status": found.exit_status}, indent=2)
    else:
        print_lines(verdict_lines(found, terminal_width(sys.stdout)), colour=is_terminal(sys.stdout))
    return found.exit_status


async def run_checks(app: "App", options: "VerifyOptions") -> "Verdict":
    import anyio

    colour = use_colour(sys.stderr, app.settings.display)
    progress = PrintedProgress(live=is_terminal(sys.stderr), colour=colour)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.tick)
        verdict = await app.checks.verify(options, progress)
        tasks.cancel_scope.cancel()
    progress.draw()
    return verdict


async def fix(app: "App", verdict: "Verdict", options: "VerifyOptions") -> bool:
    """Show what code can correct as a diff, and apply it if the user agrees; whether it was applied."""
    from handrail.app.builds.verify import fix_document
    from handrail.interfaces.cli.commands.edit import apply_document

    fixes = await app.checks.fixes(verdict, options)
    if not fixes:
        print_text("There is nothing that code alone can correct.", file=sys.stderr)
        return False
    document = fix_document(fixes)
    print_text(app.proposals.preview(document), file=sys.stderr)
    for each in fixes:
        print_text(f"{each.path}: {', '.join(each.by)}", file=sys.stderr)
    if not can_ask(sys.stderr):
        print_text("Nothing was written: nobody can be asked here.", file=sys.stderr)
        return False
    if not confirm("Apply this?", default=False, err=True):
        print_text("Nothing was written.", file=sys.stderr)
        return False
    return await apply_document(app, document, "verify --fix") == 0


def print_checks(checks: "Sequence[Check]") -> None:
    column = name_column(check.name for check in checks)
    for check in checks:
        head = f"{fit(check.name, column):<{column}}  "
        text = f"unavailable: {check.missing}" if check.missing else check.command
        where = f"  (in {check.part})" if check.part else ""
        print_lines([line(head, text, where)], colour=False)
