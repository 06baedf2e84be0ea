"""One line at the bottom of stderr that says what is going on, where a person watches it."""

import sys
import time

from handrail.interfaces.cli.activity import Activity
from handrail.interfaces.cli.styles import ansi
from handrail.interfaces.cli.terminal import width_of
from handrail.protocol.events import Delta, Recorded

ERASE = "\r\x1b[K"
TICK_SECONDS = 0.25


class StatusLine:
    """Drawn over and over while it ticks; whoever writes a line that stays has it erased first."""

    def __init__(self, *, live: bool, colour: bool) -> None:
        """`live` is false where nobody watches: then nothing is drawn."""
        self._activity = Activity()
        self._live = live
        self._colour = colour
        self._shown = ""

    def saw(self, recorded: Recorded) -> None:
        """Take in an event that is about to be shown."""
        self._erase()
        self._activity.saw(recorded)

    def heard(self, delta: Delta) -> None:
        self._activity.heard(delta, time.time())

    async def tick(self) -> None:
        """Let its clock go on until this is cancelled."""
        import anyio

        try:
            while True:
                await anyio.sleep(TICK_SECONDS)
                self._draw()
        finally:
            self._erase()

    def _draw(self) -> None:
        rows = self._activity.lines(time.time(), width_of(sys.stderr))[:1] if self._live else []
        text = ansi(rows[0], colour=self._colour) if rows else ""
        if text != self._shown:
            self._shown = text
            print(f"{ERASE}{text}", end="", file=sys.stderr, flush=True)

    def _erase(self) -> None:
        if self._shown:
            self._shown = ""
            print(ERASE, end="", file=sys.stderr, flush=True)
