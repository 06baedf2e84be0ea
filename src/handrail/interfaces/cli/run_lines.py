"""Runs as lines: which stage is under way, what was found wanting, and what the user is asked."""

from handrail.interfaces.cli.styles import BAD, BOLD, INDENT, PLAIN, Line, line, wrap
from handrail.interfaces.cli.tool_lines import note
from handrail.protocol.events import (
    BreakoutPending,
    Event,
    GateFailed,
    RunBrokenOff,
    RunCompleted,
    RunContinued,
    RunPaused,
    RunRepaired,
    StageStarted,
)


def run_lines(event: Event, width: int) -> list[Line]:
    """What a person is shown of a run; nothing of one that is the conversation itself."""
    match event:
        case StageStarted(kind="ask" | "code"):
            at = f"{event.number} of {event.of}: " if event.of > 1 else ""
            return note("stage", f"{at}{event.stage}", width)
        case GateFailed():
            return note("wanting", f"{event.stage}: {'; '.join(event.issues)}", width, BAD)
        case RunRepaired():
            through = event.first if event.first == event.last else f"{event.first} to {event.last}"
            return note("again", f"{through}, repair {event.number}", width)
        case RunContinued():
            return note("goes on", f"with the next steps, round {event.number}", width)
        case RunPaused() | BreakoutPending():
            return _text(event.text, width, BOLD)
        case RunCompleted(text=text) if text:
            return _text(text, width)
        case RunBrokenOff():
            return note("run", "left; what it found is kept", width)
        case _:
            return []


def _text(text: str, width: int, style: str = PLAIN) -> list[Line]:
    rows: list[Line] = []
    for each in text.split("\n"):
        rows += wrap(line((style, f"{INDENT}{each}")), width, INDENT)
    return rows
