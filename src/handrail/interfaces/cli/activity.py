"""What a turn is doing now, and the one-line status on stderr."""

import sys
import time

from msgspec import Struct, field

from handrail.interfaces.cli.render.styles import BODY_INDENT, Line, fit, format_clock, line
from handrail.interfaces.cli.terminal import redraw, terminal_width
from handrail.protocol import events
from handrail.protocol.events.requests import Purpose

LONG_SECONDS = 10.0
OUTPUT_LINES = 3
OUTPUT_KEPT = 4000
SIDE_REQUESTS: dict[Purpose, tuple[str, str]] = {
    "summary": ("compacting", "older turns, with notes"),
    "batch": ("deciding", "how to continue"),
    "breakout": ("deciding", "what your message means for the paused run"),
    "route": ("deciding", "which route to take"),
    "search": ("trying", "one more answer"),
    "subtask": ("splitting", "a subtask"),
    "relations": ("reading", "a paragraph for its relations"),
}


class Activity(Struct):
    """`word` is empty when nothing is going on."""

    word: str = ""
    what: str = ""
    since: float = 0.0
    turn_since: float = 0.0
    output: str = ""
    background: dict[str, str] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        return self.turn_since > 0

    def rings(self, recorded: events.Recorded, opened: float) -> bool:
        """Whether to ring the bell: a long turn has ended, or waits for the user."""
        halts = isinstance(recorded.event, events.TurnFinished | events.ApprovalAsked | events.QuestionAsked)
        new = recorded.at >= opened
        return halts and new and self.running and recorded.at - self.turn_since > LONG_SECONDS

    def saw(self, recorded: events.Recorded) -> None:
        at, event = recorded.at, recorded.event
        match event:
            case events.TurnStarted():
                self.turn_since = at
                self.set("working", "", at)
            case events.RequestStarted():
                self.set("asking", event.model, at)
            case events.SideAsked(purpose="title"):
                pass  # the user waits for nothing
            case events.SideAsked():
                word, what = SIDE_REQUESTS[event.purpose]
                self.set(word, f"{what}, by {event.model}", at)
            case events.SideAnswered() | events.Answered() | events.ToolFinished():
                # Subtasks, proposals and undo work outside a turn.
                self.set("working" if self.running else "", "", at)
            case events.RequestFailed() if event.retry_in is not None:
                self.set("waiting", f"to try again in {event.retry_in:.0f} s", at)
            case events.CheckStarted():
                self.set("checking", event.command, at)
            case events.SubagentEvent(event={"type": "tool_started", "tool": str() as tool} as inner):
                self.set("subagent", f"{tool} {inner.get('summary', '')}", at)
            case events.ToolStarted():
                self.set(event.tool, event.summary, at)
            case events.ApprovalAsked() | events.QuestionAsked():
                self.set("waiting", "for you", at)
            case events.BackgroundStarted():
                self.background[event.background_id] = event.command
            case events.BackgroundEnded():
                self.background.pop(event.background_id, None)
            case events.TurnFinished():
                self.turn_since = 0.0
                self.set("", "", at)

    def heard(self, delta: events.Delta, now: float) -> None:
        if delta.kind == "output":
            self.output = (self.output + delta.text)[-OUTPUT_KEPT:]
            return
        if delta.kind == "progress":
            # The clock restarts with each kind of work, not with each step of it.
            word, _, what = delta.text.partition(" ")
            if self.running and self.word != "stopping":
                self.set(word, what, self.since if word == self.word else now)
            return
        word = {"thinking": "thinking", "text": "answering"}.get(delta.kind, "")
        if word and self.word != word and self.running:
            self.set(word, "", now)

    def lines(self, now: float, width: int) -> list[Line]:
        """The status, once the turn takes more than a second, and the end of a command's output."""
        if not self.word or now - self.turn_since < 1:
            return []
        from handrail.interfaces.cli.render.tool_calls import tool_line

        tail = self.output.rstrip().splitlines()[-OUTPUT_LINES:]
        rows = [line(("dim", BODY_INDENT + fit(one, width - len(BODY_INDENT)))) for one in tail]
        result = line(("dim", format_clock(now - self.since)))
        return [*tool_line(self.word, self.what, result, width)[:1], *rows]

    def behind(self, width: int) -> list[Line]:
        """One line about commands in the background; nothing where there are none."""
        if not self.background:
            return []
        listed = ", ".join(f"{key} {command}" for key, command in self.background.items())
        return [line(("dim", fit(f"in the background: {listed}", width)))]

    def set(self, word: str, what: str, since: float) -> None:
        self.word, self.what, self.since, self.output = word, what, since, ""


TICK_SECONDS = 0.25


class StatusLine:
    """One line on stderr, redrawn while it ticks and erased before an event is shown."""

    def __init__(self, *, live: bool, colour: bool) -> None:
        self._activity = Activity()
        self._live = live
        self._colour = colour
        self._shown: Line = ()

    def saw(self, recorded: events.Recorded) -> None:
        self._erase()
        self._activity.saw(recorded)

    def heard(self, delta: events.Delta) -> None:
        self._activity.heard(delta, time.time())

    async def tick(self) -> None:
        import anyio

        try:
            while True:
                await anyio.sleep(TICK_SECONDS)
                rows = self._activity.lines(time.time(), terminal_width(sys.stderr)) if self._live else []
                content = rows[0] if rows else ()
                if content != self._shown:
                    self._shown = content
                    redraw(content, colour=self._colour, file=sys.stderr)
        finally:
            self._erase()

    def _erase(self) -> None:
        if self._shown:
            self._shown = ()
            redraw(file=sys.stderr)
