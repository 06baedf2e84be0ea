"""`handrail trace`: whether it is as it was written, who wrote a line, and what was done, in numbers."""

import json
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from handrail.interfaces.cli.opening import opened
from handrail.interfaces.cli.options import options_for, workspace_option
from handrail.interfaces.cli.paging import page
from handrail.interfaces.cli.trace_lines import (
    as_json,
    blame_lines,
    blamed_json,
    checked_json,
    checked_lines,
    report_lines,
)
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from handrail.changes.trace.blame import BlamedLine
    from handrail.engine.tracing import Checked, Tracing

    Answer = TypeVar("Answer")

json_option = click.option("--json", "as_data", is_flag=True, help="As JSON, for other programs.")


@click.group()
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Say which intent, turn and model wrote what, and whether the trace of it is as it was written."""
    ctx.obj = given


@command.command()
@click.option("--restore", is_flag=True, help="Write lines again that were cut off, from the log.")
@json_option
@click.pass_obj
def verify(given: dict[str, Any], /, restore: bool, as_data: bool) -> int:
    """Check every line of .orchestration/agent_trace.jsonl; exit status 1 where one is not as it was written.

    Lines are told by their number in the file. What another branch has is no fault.
    """

    async def run(tracing: "Tracing") -> "Checked":
        return await tracing.verify(restore=restore)

    found = _asked(given, run)
    if as_data:
        print(json.dumps(checked_json(found), indent=2))
    else:
        page(checked_lines(found), colour=False)
    return 1 if found.findings else 0


@command.command()
@click.argument("place", metavar="FILE[:LINE]")
@json_option
@click.pass_obj
def blame(given: dict[str, Any], /, place: str, as_data: bool) -> None:
    """Say which intent, turn and model wrote each line of a file, or one line of it.

    What was moved stays whose it is. `-` is nobody that is known here, such as you.
    """
    name, _, number = place.rpartition(":")
    numbered = bool(name) and number.isdecimal()

    async def run(tracing: "Tracing") -> "tuple[list[BlamedLine], int | None]":
        if not numbered or tracing.has(place):  # a file may have a name that ends like that
            return tracing.blame(place), None
        return tracing.blame(name), int(number)

    lines, wanted = _asked(given, run)
    if wanted is not None:
        if not 1 <= wanted <= len(lines):
            count = f"{len(lines):,} line{'s' * (len(lines) != 1)}"
            raise UsageProblem(f"{name} has {count}: there is no line {number}.")
        lines = [lines[wanted - 1]]
    if as_data:
        for each in lines:
            print(json.dumps(blamed_json(each)))
    else:
        page(blame_lines(lines), colour=False)


@command.command()
@json_option
@click.pass_obj
def report(given: dict[str, Any], /, as_data: bool) -> None:
    """Count changes, lines and rework by intent, by class and by model."""

    async def run(tracing: "Tracing") -> Any:
        return tracing.report()

    found = _asked(given, run)
    if as_data:
        print(json.dumps(as_json(found), indent=2))
        return
    rows = report_lines(found)
    if not rows:
        print("Nothing was changed here yet.", file=sys.stderr)
    page(rows, colour=False)


def _asked(given: dict[str, Any], ask: "Callable[[Tracing], Awaitable[Answer]]") -> "Answer":
    import anyio

    async def run() -> "Answer":
        async with opened(options_for(given)) as app:
            return await ask(app.trace)

    return anyio.run(run)
