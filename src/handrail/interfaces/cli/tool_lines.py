"""A line for each tool call, what stands below it, and notes: what other lines are made of."""

from dataclasses import dataclass, field
from typing import Any

from handrail.interfaces.cli import diffs
from handrail.interfaces.cli.refusal_words import in_short
from handrail.interfaces.cli.styles import (
    BAD,
    BODY_INDENT,
    DIM,
    GOOD,
    INDENT,
    NAME_COLUMNS,
    PLAIN,
    Line,
    Piece,
    fit,
    line,
    wrap,
)
from handrail.protocol.events import ApprovalAsked, ChangePrepared, CheckFinished, ToolFinished
from handrail.protocol.values import Todo

WHAT_COLUMNS = 24
BODY_LINES = 16
DIFF_LINES = 60
TELLING = ("path", "command", "pattern", "query", "url", "question")
"""Arguments that say best what a call is about."""
CALLED = {
    "apply_diff": "diff",
    "background": "behind",
    "record_lesson": "lesson",
    "request_scope": "scope",
    "select_active_intent": "intent",
}
"""Tools whose names do not fit into their column."""
SHOWN_OTHERWISE = ("todos", "ask_user")
"""Tools whose success is an event of its own: the list, the answer."""


@dataclass
class Known:
    """What earlier events said that later ones only refer to."""

    calls: dict[str, str] = field(default_factory=dict)
    """{call: what it is about}."""
    previewed: set[str] = field(default_factory=set)
    """Calls whose diff or command has been shown, because it was asked about."""
    asked: dict[str, ApprovalAsked] = field(default_factory=dict)
    todos: tuple[Todo, ...] = ()
    going_back: ChangePrepared | None = None
    """The change set that takes others back."""
    written: dict[str, str] = field(default_factory=dict)
    """{text: file}, of files that were shown whole when they were written."""
    wanting: str = ""
    """What a gate of this turn found first."""


def about(arguments: dict[str, Any]) -> str:
    """One line that tells what a call is about, for a call that never started."""
    paths = arguments.get("paths")
    if isinstance(paths, list) and paths and all(isinstance(each, str) for each in paths):
        return " ".join(", ".join(paths).split())
    named = [arguments[name] for name in TELLING if isinstance(arguments.get(name), str)]
    texts = named or [value for value in arguments.values() if isinstance(value, str)]
    return " ".join(texts[0].split()) if texts else ""


def tool_line(tool: str, what: str, result: Line, width: int) -> list[Line]:
    """`  read      src/cart.py               88 lines`; a long result goes on below itself."""
    head = Piece(DIM, f"{INDENT}{tool:<{NAME_COLUMNS - 1}} ")
    room = width - len(head.text)
    if not result:
        return [(head, Piece(PLAIN, fit(what, room)))]
    if not what:
        return wrap((head, *result), width, " " * len(head.text))
    wanted = max(WHAT_COLUMNS, room - 3 - sum(len(text) for _, text in result))
    shown = fit(what, min(room, wanted))
    whole = (head, Piece(PLAIN, f"{shown:<{WHAT_COLUMNS}}   "), *result)
    return wrap(whole, width, " " * len(head.text))


def tool_finished(event: ToolFinished, known: Known, width: int) -> list[Line]:
    if event.tool in SHOWN_OTHERWISE and event.status == "ok":
        return []
    changed = diffs.is_diff(event.shown)
    if event.call_id in known.previewed:
        # What it is about stands above, where it was asked.
        word = "" if event.status != "ok" else "applied" if changed else "done"
        back = line((DIM, "   /undo takes it back")) if word == "applied" else ()
        rows = tool_line(word, "", (*result_of(event), *back), width)
        return rows if changed else rows + body(event.shown, width)
    tool = CALLED.get(event.tool, event.tool)
    rows = tool_line(tool, known.calls.get(event.call_id, ""), result_of(event), width)
    return rows + body(event.shown, width)


def result_of(event: ToolFinished) -> Line:
    """The end of a tool's line: what came of it, red where it was refused or failed."""
    if event.status == "ok":
        return line((DIM, event.summary)) if event.summary else ()
    word = {"cancelled": "stopped"}.get(event.status, event.status)
    if event.error is None:
        return line((BAD, word), f"  {event.summary}" if event.summary else "")
    return line((BAD, word), f"  {in_short(event.error)}")


def body(text: str, width: int) -> list[Line]:
    """What stands below a tool's line: a diff, or text with its middle left out when it is long."""
    if not text.strip():
        return []
    if diffs.is_diff(text):
        return capped([tuple(fitted(row, width)) for row in diffs.render(text)], DIFF_LINES)
    room = width - len(BODY_INDENT)
    return capped(
        [line((DIM, BODY_INDENT + fit(one, room))) for one in text.rstrip().split("\n")], BODY_LINES
    )


def fitted(content: Line, width: int) -> list[Piece]:
    """The pieces of a line that have room, the last one cut."""
    pieces, left = [], width
    for style, text in content:
        shown = fit(text, left)
        pieces.append(Piece(style, shown))
        left -= len(shown)
    return pieces


def capped(rows: list[Line], limit: int) -> list[Line]:
    """At most so many lines: the beginning, how many are left out, and the end."""
    if len(rows) <= limit:
        return rows
    first = limit // 3
    last = limit - first - 1
    left_out = line((DIM, f"{BODY_INDENT}… {len(rows) - first - last} more lines"))
    return [*rows[:first], left_out, *rows[-last:]]


def check_finished(event: CheckFinished, width: int) -> list[Line]:
    """Green is for verified, and for nothing else."""
    verdict = Piece(GOOD, "passes") if event.passed else Piece(BAD, "fails")
    rows = tool_line("check", "", (verdict, Piece(DIM, f"  {event.summary}")), width)
    return rows if event.passed else rows + body(event.content, width)


def note(name: str, text: str, width: int, style: str = DIM) -> list[Line]:
    """`  name      text`, wrapped below itself."""
    head = f"{INDENT}{name:<{NAME_COLUMNS - 1}} "
    return wrap(line((DIM, head), (style, " ".join(text.split()))), width, " " * len(head))
