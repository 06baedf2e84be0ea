"""`handrail do FILE`: build the open items of a checklist; stages on stderr, the summary on stdout."""

import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.activity import StatusLine
from handrail.interfaces.cli.commands.run import STOP_SECONDS
from handrail.interfaces.cli.commands.splits.split import (
    LIMITS,
    edit_option,
    limit_options,
    offer,
    split_options,
)
from handrail.interfaces.cli.options import opened_app, options_for, run_with_app, turn_options
from handrail.interfaces.cli.render.build_lines import BuildLines
from handrail.interfaces.cli.render.checklist_lines import item_lines, report_lines, wanted_lines
from handrail.interfaces.cli.render.styles import INDENT, Line, count_of, line, one_line, wrap
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol import events
from handrail.protocol.commands import Cancel
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.app import App, Options
    from handrail.app.builds.checklists import DoOptions, Item, ItemResult, Reply
    from handrail.protocol.values import ChecklistItem

DEFAULT_MOST = 5
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(_context: click.Context, _option: click.Parameter, value: str) -> float:
    """Seconds from words such as `30s`, `5m` or `1h`."""
    found = re.fullmatch(r"(\d{1,6})\s*([smh]?)", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is no time. Write it as 30s, 5m or 1h.")
    return float(found[1]) * UNITS[found[2]]


@click.command()
@click.argument("file")
@click.option("--item", metavar="N", type=click.IntRange(min=1), help="Only this item, counted from the top.")
@click.option("--auto", is_flag=True, help="Build without asking before each item.")
@click.option(
    "--max",
    "most",
    type=click.IntRange(min=1),
    help="Ask after so many items; default 5. With --parallel: the first so many; default: all.",
)
@click.option(
    "--pause",
    metavar="TIME",
    default="0s",
    callback=seconds_of,
    help="Wait so long between two items, such as 30s.",
)
@click.option("--keep-going", is_flag=True, help="Go on after an item that is not complete.")
@click.option("--parallel", is_flag=True, help="All items at once, as subtasks: see `handrail split`.")
@click.option("--at-once", type=click.IntRange(1, 256), help="So many subtasks at once; default 4.")
@limit_options
@edit_option
@click.option("--json", "as_json", is_flag=True, help="The summary as one JSON object on stdout.")
@click.option("--max-usd", type=click.FloatRange(min=0), help="End the build of an item at this cost.")
@click.option("--max-steps", type=click.IntRange(min=1), help="End it after so many requests.")
@click.option("--trust", is_flag=True, help="Trust the workspace's own settings for this run.")
@turn_options
def command(
    file: str,
    item: int | None,
    most: int | None,
    *,
    auto: bool,
    parallel: bool,
    at_once: int | None,
    edits: bool,
    pause: float,
    keep_going: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Build the open items of the checklist FILE, each as `handrail build` does.

    An item is ticked by code, together with its verified files, and only if it is complete. The file is read
    again before each item. Ctrl-C stops after the item, a second one stops it at once; the same command then
    goes on, also after a crash. Exits with 0 where every item that was attempted is complete.

    --strategy, --at-once, --tries, --max-tokens, --subtask-usd, --subtask-tokens, --workers and --edit are
    for --parallel, where --max-usd is for all items together.
    """
    import anyio

    from handrail.app.builds.checklists import DoOptions

    plan = {name: given.pop(name) for name in ("strategy", "workers", *LIMITS) if name in given}
    plan |= {"parallel": at_once, "usd": given["max_usd"]}
    if parallel:
        if item or keep_going or pause or given["max_steps"]:
            raise UsageProblem(
                "--parallel does all open items at once; leave out --item, --keep-going, --pause and"
                " --max-steps."
            )
        given["max_usd"] = None  # that of a turn; here it is of all items together

        async def run(app: "App") -> int:
            from handrail.app.splits.plans import plan_checklist

            session_id = plan_checklist(app, file, split_options(plan), most)
            return await offer(app, session_id, edits=edits, starts=auto, as_json=as_json)

        return run_with_app(given, run)
    if edits or any(value for name, value in plan.items() if name != "usd"):
        raise UsageProblem(
            "Some of these options are for subtasks; --help names them. Add --parallel, or leave them out."
        )
    most = most or DEFAULT_MOST
    wanted = DoOptions(item=item or 0, auto=auto, most=most, pause=pause, keep_going=keep_going)
    return anyio.run(run_do, options_for(given), file, wanted, as_json)


async def run_do(options: "Options", file: str, wanted: "DoOptions", as_json: bool) -> int:
    from handrail.app.builds.checklists import checklist_path, run_checklist

    async with opened_app(options) as app:
        path = checklist_path(app, file)
        if notice := await app.check_mode():
            print_text(f"handrail: {notice}", file=sys.stderr)
        await app.chosen_model()
        report = await run_checklist(app, path, wanted, TerminalDialogue(app, quiet=as_json))
    if as_json:
        print_json({**to_dict(report), "exit_status": report.exit_status}, indent=2)
    else:
        colour = terminal.use_colour(sys.stdout, app.settings.display)
        terminal.print_lines(report_lines(report, terminal.terminal_width(sys.stdout)), colour=colour)
    return report.exit_status


class TerminalDialogue:
    """Shows a run on stderr, asks on the terminal, and takes signals."""

    def __init__(self, app: "App", *, quiet: bool) -> None:
        self.stopping = False
        self._app = app
        self._quiet = quiet
        self._colour = terminal.use_colour(sys.stderr, app.settings.display)
        self._width = terminal.terminal_width(sys.stderr)
        self._lines = BuildLines(self._width, app.log.blob)
        self._status: StatusLine | None = None

    def resumes(self, attempted: int) -> None:
        self._tell([line(("dim", f"continues a run: {count_of(attempted, 'item')} begun so far"))])

    def wants(self, item: "Item", left: int) -> "Reply | None":
        if not terminal.can_ask(sys.stderr):
            print_text(
                "handrail: nobody can be asked here whether to build an item. Use --auto.", file=sys.stderr
            )
            return None
        self._tell(wanted_lines(item, self._width))
        question = f"Build item {item.number}? {left} left (yes, no: leave it, stop)"
        replies: dict[str, Reply] = {"yes": "yes", "no": "no", "stop": "stop"}
        try:
            return replies[terminal.choose(question, list(replies), default="yes")]
        except click.Abort:
            return "stop"

    def goes_on(self, attempted: int, left: int) -> bool:
        told = f"{count_of(attempted, 'item')} attempted, {left} left"
        if not terminal.can_ask(sys.stderr):
            print_text(f"handrail: {told}: the limit of --max. Call it again to go on.", file=sys.stderr)
            return False
        try:
            return terminal.confirm(f"{told}. Go on?", default=True, err=True)
        except click.Abort:
            return False

    async def waited(self, seconds: float) -> bool:
        import anyio

        self._tell([line(("dim", f"waits for {seconds:.0f} s; Ctrl-C stops here"))])
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            with anyio.move_on_after(seconds):
                async for _ in signals:
                    return False
        return True

    @asynccontextmanager
    async def building(self, item: "ChecklistItem", session_id: str) -> AsyncIterator[None]:
        import anyio

        head = line(("bold", f"item {item.number} of {item.path}: {one_line(item.text)}"))
        self._tell(wrap(head, self._width, INDENT))
        live = terminal.is_terminal(sys.stderr) and not self._quiet
        self._status = StatusLine(live=live, colour=self._colour)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._signals, session_id)
            tasks.start_soon(self._status.tick)
            yield
            tasks.cancel_scope.cancel()

    async def _signals(self, session_id: str) -> None:
        import anyio

        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                if number == signal.SIGINT and not self.stopping:
                    self.stopping = True
                    self._tell([line("stops after this item; Ctrl-C once more stops it at once")])
                    continue
                await self._app.send(session_id, Cancel(by="user" if number == signal.SIGINT else "signal"))
                break
            with anyio.move_on_after(STOP_SECONDS):
                async for _ in signals:
                    break
        raise KeyboardInterrupt

    def saw(self, item: events.Recorded | events.Delta) -> None:
        if self._status is None:
            return
        if isinstance(item, events.Delta):
            self._status.heard(item)
            return
        self._status.saw(item)
        self._tell(self._lines.saw(item.event))

    def built(self, result: "ItemResult") -> None:
        self._tell(item_lines(result, self._width))

    def _tell(self, rows: list[Line]) -> None:
        if not self._quiet:
            terminal.print_lines(rows, colour=self._colour, file=sys.stderr)
