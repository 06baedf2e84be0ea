"""The checks that run now: one line for each, with its clock or its result."""

import sys
import time
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from handrail.interfaces.cli.render.check_lines import name_column, result_line, running_line, waiting_line
from handrail.interfaces.cli.render.styles import Line
from handrail.interfaces.cli.terminal import print_lines, redraw_block, terminal_width

if TYPE_CHECKING:
    from handrail.app.builds.verify import CheckResult

TICK_SECONDS = 0.25
MAX_ROWS = 100


class CheckProgress:
    def __init__(self) -> None:
        self._results: dict[str, CheckResult | None] = {}
        self._running: dict[str, tuple[float, str]] = {}

    def planned(self, names: Sequence[str]) -> None:
        self._results = dict.fromkeys(names)

    def started(self, name: str, doing: str) -> None:
        self._running[name] = (time.monotonic(), doing)

    def finished(self, result: "CheckResult") -> None:
        self._running.pop(result.name, None)
        self._results[result.name] = result

    def rows(self, width: int, most: int = MAX_ROWS) -> list[Line]:
        """Every check: waiting, running with a clock, or its result; if not all fit, those that run."""
        now, column = time.monotonic(), name_column(self._results)
        rows = []
        shown = list(self._results.items())
        if len(shown) > most:
            shown = sorted(shown, key=lambda item: item[0] not in self._running)[:most]
        for name, result in shown:
            if name in self._running:
                since, doing = self._running[name]
                rows.append(running_line(name, doing, now - since, column, width))
            else:
                rows.append(result_line(result, column, width) if result else waiting_line(name, column))
        return rows


class PrintedProgress(CheckProgress):
    """The same on stderr: redrawn where that is a terminal, else each result when it is there."""

    def __init__(self, *, live: bool, colour: bool) -> None:
        super().__init__()
        self._live, self._colour = live, colour
        self._drawn = 0

    def started(self, name: str, doing: str) -> None:
        super().started(name, doing)
        self.draw()

    def finished(self, result: "CheckResult") -> None:
        before = self._results.get(result.name)
        super().finished(result)
        column, width = name_column(self._results), terminal_width(sys.stderr)
        row = result_line(result, column, width)
        if not self._live and not (before and result_line(before, column, width) == row):
            print_lines([row], colour=self._colour, file=sys.stderr)
        self.draw()

    def draw(self) -> None:
        if self._live:
            # More lines than the screen has could not be redrawn.
            rows = self.rows(terminal_width(sys.stderr), max(1, get_terminal_size().lines - 1))
            redraw_block(rows, self._drawn, colour=self._colour, file=sys.stderr)
            self._drawn = len(rows)

    async def tick(self) -> None:
        import anyio

        while self._live:
            await anyio.sleep(TICK_SECONDS)
            self.draw()
