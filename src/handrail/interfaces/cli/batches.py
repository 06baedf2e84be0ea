"""Commands of an answer, as they are listed, and how far a batch of them is."""

from collections.abc import Sequence

from handrail.interfaces.cli.approvals import broken
from handrail.interfaces.cli.styles import ACCENT, BAD, DIM, INDENT, PLAIN, Line, Piece
from handrail.interfaces.cli.tool_lines import note
from handrail.protocol.events import BatchDecided, BatchFinished, BatchStep

NAME = "all"


def offered(commands: Sequence[str], width: int) -> list[Line]:
    """That an answer has commands, and how to run them."""
    if len(commands) == 1:
        return note("run", "1 command: /run shows it, /run 1 runs it", width)
    ways = "/run lists them, /run 2 runs one, /run all runs all"
    return note("run", f"{len(commands)} commands: {ways}", width)


def listed(commands: Sequence[str], width: int) -> list[Line]:
    """All of every command, with what is invisible spelled out."""
    rows: list[Line] = []
    columns = len(str(len(commands)))
    for number, command in enumerate(commands, start=1):
        head = Piece(ACCENT, f"{INDENT}{number:>{columns}} ")
        below = Piece(DIM, " " * len(head.text))
        first, *others = command.split("\n")
        lines = [(head, Piece(PLAIN, first)), *((below, Piece(PLAIN, other)) for other in others)]
        rows += [part for row in lines for part in broken(row, width)]
    return rows


def batch_lines(event: BatchStep | BatchDecided | BatchFinished, width: int) -> list[Line]:
    """Progress before each command, what was decided against going on, and what came of it all."""
    match event:
        case BatchStep(total=1) | BatchFinished(total=1, end="completed"):
            return []
        case BatchStep():
            return note(NAME, _progress(event), width)
        case BatchDecided(decision="replace"):
            return note("instead", f"{event.command}{f' ({event.why})' if event.why else ''}", width)
        case BatchFinished():
            style = DIM if event.end == "completed" and not event.failed else BAD
            return note(NAME, _progress(event), width, style)
        case _:
            return []


def _progress(event: BatchStep | BatchFinished) -> str:
    return (
        f"{event.number}/{event.total} · {event.succeeded} succeeded · {event.failed} failed"
        f" · {event.remaining} remaining"
    )
