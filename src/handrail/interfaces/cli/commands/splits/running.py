"""Run a split from a command: progress on stderr, signals, the report on stdout."""

import signal
import sys
from collections.abc import Callable
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.render.split_lines import progress_lines, report_lines, subtask_line
from handrail.interfaces.cli.terminal import print_json, print_text
from handrail.protocol import events
from handrail.protocol.subtask import SplitCommand
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.splits.report import SplitReport

TICK_SECONDS = 0.5


async def run_shown(app: "App", session_id: str, command: SplitCommand, *, as_json: bool) -> int:
    """Run it, show how far it is, print the report, and return the exit status."""
    import anyio

    from handrail.app.splits.run import run_split

    progress = SplitProgress(app, quiet=as_json)
    asks = confirm if terminal.can_ask(sys.stderr) and not as_json else None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pause_on_signals, app, session_id)
        tasks.start_soon(progress.tick)
        report = await run_split(
            app,
            session_id,
            command,
            saw=progress.saw,
            watch=progress.watch,
            word=asks,
            tell=lambda text: print_text(f"handrail: {text}", file=sys.stderr),
        )
        tasks.cancel_scope.cancel()
    progress.draw()
    print_report(app, report, as_json=as_json)
    return report.exit_status


def print_report(app: "App", report: "SplitReport", *, as_json: bool) -> None:
    if as_json:
        print_json(to_dict(report), indent=2)
        return
    colour = terminal.use_colour(sys.stdout, app.settings.display)
    terminal.print_lines(report_lines(report, terminal.terminal_width(sys.stdout)), colour=colour)


def confirm(asked: events.ApprovalAsked) -> bool:
    print_text(asked.preview, file=sys.stderr)
    return terminal.confirm(f"{asked.why}. Apply it?", default=False, err=True)


async def _pause_on_signals(app: "App", session_id: str) -> None:
    """The first Ctrl-C lets running subtasks end, and starts no more; the second stops at once."""
    import anyio

    from handrail.app.splits.run import tell_split

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            if number == signal.SIGTERM:
                break
            await tell_split(app, session_id, SplitCommand("pause"))
            print_text(
                "handrail: pauses when what runs has ended; Ctrl-C once more stops it now.", file=sys.stderr
            )
            async for _ in signals:
                break
            break
    raise KeyboardInterrupt


class SplitProgress:
    """Stacked bars where stderr is a terminal, else a line for each subtask that has ended."""

    def __init__(self, app: "App", *, quiet: bool) -> None:
        self._live = terminal.is_terminal(sys.stderr) and not quiet
        self._prints = not self._live and not quiet
        self._colour = terminal.use_colour(sys.stderr, app.settings.display)
        self._report: Callable[[], SplitReport] | None = None
        self._drawn = 0

    def watch(self, report: "Callable[[], SplitReport]") -> None:
        self._report = report

    def saw(self, recorded: events.Recorded) -> None:
        match recorded.event:
            case events.SubtaskDone(subtask_id=name) | events.SubtaskFailed(subtask_id=name) if self._prints:
                rows = self._report().subtasks if self._report else ()
                shown = [
                    subtask_line(row, terminal.terminal_width(sys.stderr)) for row in rows if row.id == name
                ]
                terminal.print_lines(shown, colour=self._colour, file=sys.stderr)
            case events.SplitStalled(detail=detail) if not self._live:
                print_text(f"handrail: {detail or 'A worker takes the subtasks now.'}", file=sys.stderr)

    async def tick(self) -> None:
        import anyio

        while self._live:
            self.draw()
            await anyio.sleep(TICK_SECONDS)

    def draw(self) -> None:
        if self._live and self._report:
            most = max(1, get_terminal_size().lines - 1)
            rows = progress_lines(self._report(), terminal.terminal_width(sys.stderr), most)
            terminal.redraw_block(rows, self._drawn, colour=self._colour, file=sys.stderr)
            self._drawn = len(rows)
