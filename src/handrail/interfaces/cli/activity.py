"""What is going on now, in a word and with a clock; a fold of what the follower sees."""

from dataclasses import dataclass, field

from handrail.interfaces.cli.figures import clock
from handrail.interfaces.cli.styles import BODY_INDENT, DIM, Line, fit, line
from handrail.protocol.events import (
    Answered,
    ApprovalAsked,
    BackgroundEnded,
    BackgroundStarted,
    CheckStarted,
    Delta,
    QuestionAsked,
    Recorded,
    RequestFailed,
    RequestStarted,
    SideAnswered,
    SideAsked,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from handrail.protocol.events.context import Purpose

LONG_SECONDS = 10.0
OUTPUT_LINES = 3
OUTPUT_KEPT = 4000
BESIDE: dict[Purpose, tuple[str, str]] = {
    "summary": ("compacting", "older turns, with notes"),
    "batch": ("deciding", "how to go on"),
    "breakout": ("deciding", "what that means to the paused run"),
    "route": ("deciding", "where this belongs"),
}
"""What a model is asked beside the conversation."""


@dataclass
class Activity:
    """`word` is empty when nothing is going on."""

    word: str = ""
    what: str = ""
    since: float = 0.0
    turn_since: float = 0.0
    output: str = ""
    """The end of what the running command has written."""
    background: dict[str, str] = field(default_factory=dict)
    """Commands in the background, by their ids."""

    @property
    def running(self) -> bool:
        """Whether a turn is."""
        return self.turn_since > 0

    def rings(self, recorded: Recorded, opened: float) -> bool:
        """Whether this event ends, or halts, a turn so long that the user may be looking elsewhere."""
        halts = isinstance(recorded.event, TurnFinished | ApprovalAsked | QuestionAsked)
        new = recorded.at >= opened
        return halts and new and self.running and recorded.at - self.turn_since > LONG_SECONDS

    def saw(self, recorded: Recorded) -> None:
        """Take in an event."""
        at, event = recorded.at, recorded.event
        match event:
            case TurnStarted():
                self.turn_since = at
                self._now("working", "", at)
            case RequestStarted():
                self._now("asking", event.model, at)
            case SideAsked():
                word, what = BESIDE[event.purpose]
                self._now(word, f"{what}, by {event.model}", at)
            case SideAnswered():
                self._now("working" if self.running else "", "", at)
            case RequestFailed() if event.retry_in is not None:
                self._now("waiting", f"to try again in {event.retry_in:.0f} s", at)
            case CheckStarted():
                self._now("checking", event.command, at)
            case ToolStarted():
                self._now(event.tool, event.summary, at)
            case ApprovalAsked() | QuestionAsked():
                self._now("waiting", "for you", at)
            case Answered() | ToolFinished() if self.running:
                self._now("working", "", at)
            case BackgroundStarted():
                self.background[event.background_id] = event.command
            case BackgroundEnded():
                self.background.pop(event.background_id, None)
            case TurnFinished():
                self.turn_since = 0.0
                self._now("", "", at)

    def heard(self, delta: Delta, now: float) -> None:
        """Take in streaming text."""
        if delta.kind == "output":
            self.output = (self.output + delta.text)[-OUTPUT_KEPT:]
            return
        if delta.kind == "progress":
            self._progress(delta.text, now)
            return
        word = {"thinking": "thinking", "text": "answering"}.get(delta.kind, "")
        if word and self.word != word and self.running:
            self._now(word, "", now)

    def _progress(self, words: str, now: float) -> None:
        """How far it is; the clock begins anew with each word, and not with each step."""
        word, _, what = words.partition(" ")
        if self.running and self.word != "stopping":
            self._now(word, what, self.since if word == self.word else now)

    def stopping(self, now: float) -> None:
        """The user has asked for an end of the turn."""
        self._now("stopping", "", now)

    def lines(self, now: float, width: int) -> list[Line]:
        """The status, once the turn takes longer than a second, and the end of a command's output."""
        if not self.word or now - self.turn_since < 1:
            return []
        from handrail.interfaces.cli.tool_lines import tool_line

        tail = self.output.rstrip().splitlines()[-OUTPUT_LINES:]
        rows = [line((DIM, BODY_INDENT + fit(one, width - len(BODY_INDENT)))) for one in tail]
        result = line((DIM, clock(now - self.since)))
        return [*tool_line(self.word, self.what, result, width)[:1], *rows]

    def behind(self, width: int) -> list[Line]:
        """One line about what runs in the background; none where nothing does."""
        if not self.background:
            return []
        listed = ", ".join(f"{key} {command}" for key, command in self.background.items())
        return [line((DIM, fit(f"in the background: {listed}", width)))]

    def _now(self, word: str, what: str, since: float) -> None:
        self.word, self.what, self.since, self.output = word, what, since, ""
