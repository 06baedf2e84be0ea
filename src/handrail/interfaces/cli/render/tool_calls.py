"""One line per tool call and what is shown below it; notes."""

import re
from typing import Any, Literal, get_args

from msgspec import Struct, field

from handrail.interfaces.cli.render import diffs
from handrail.interfaces.cli.render.styles import (
    BODY_INDENT,
    INDENT,
    NAME_COLUMNS,
    Line,
    Piece,
    fit,
    line,
    wrap,
)
from handrail.protocol import errors
from handrail.protocol.events import (
    ApprovalAsked,
    CandidateTried,
    ChangePrepared,
    CheckFinished,
    ToolFinished,
)
from handrail.protocol.values import Todo

SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z`])")
CALL_REASONS = ("missing_intent_id", "unknown_intent", "scope_violation", "invalid_arguments", "unknown_tool")
EDIT_REASONS = Literal[errors.FileReason, errors.MatchReason, errors.TextReason, errors.EditReason]
FIXABLE_BY_MODEL = {*CALL_REASONS, *get_args(EDIT_REASONS)} - {"large_loss"}
"""Refusals whose message goes on with how the model can fix it."""


SUBJECT_COLUMNS = 24
BODY_LINES = 16
DIFF_LINES = 60
SUBJECT_ARGUMENTS = ("path", "command", "pattern", "query", "url", "question")
"""The arguments that say best what a call is about."""
SHORT_TOOL_NAMES = {
    "apply_diff": "diff",
    "background": "bg",
    "record_lesson": "lesson",
    "request_scope": "scope",
    "select_active_intent": "intent",
    "write_notes": "write",
}
"""Tools whose names do not fit into their column."""
TOOLS_WITH_OWN_EVENTS = ("todos", "ask_user", "next_steps", "record_plan")
"""Tools whose success has an event of its own: the list, the answer."""


class RenderContext(Struct):
    """What earlier events said that later ones refer to."""

    calls: dict[str, str] = field(default_factory=dict)
    """{call: what it is about}."""
    previewed: set[str] = field(default_factory=set)
    """Calls whose diff or command was shown when the user was asked."""
    asked: dict[str, ApprovalAsked] = field(default_factory=dict)
    todos: tuple[Todo, ...] = ()
    going_back: ChangePrepared | None = None
    written: dict[str, str] = field(default_factory=dict)
    """{text: file} of files that were shown in full when they were written."""
    gate_issue: str = ""
    agent_run: str = ""
    """The last run of an agent in a folder: its result is Markdown."""
    colour: bool = True


def call_subject(arguments: dict[str, Any]) -> str:
    """What a call that never started is about, on one line."""
    paths = arguments.get("paths")
    if isinstance(paths, list) and paths and all(isinstance(each, str) for each in paths):
        return " ".join(", ".join(paths).split())
    named = [arguments[name] for name in SUBJECT_ARGUMENTS if isinstance(arguments.get(name), str)]
    texts = named or [value for value in arguments.values() if isinstance(value, str)]
    return " ".join(texts[0].split()) if texts else ""


def tool_line(tool: str, what: str, result: Line, width: int) -> list[Line]:
    """`  read      src/cart.py               88 lines`; a long result wraps below itself."""
    head = Piece("dim", f"{INDENT}{tool:<{NAME_COLUMNS - 1}} ")
    room = width - len(head.text)
    if not result:
        return [(head, Piece("", fit(what, room)))]
    if not what:
        return wrap((head, *result), width, " " * len(head.text))
    wanted = max(SUBJECT_COLUMNS, room - 3 - sum(len(text) for _, text in result))
    shown = fit(what, min(room, wanted))
    whole = (head, Piece("", f"{shown:<{SUBJECT_COLUMNS}}   "), *result)
    return wrap(whole, width, " " * len(head.text))


def tool_finished(event: ToolFinished, known: RenderContext, width: int) -> list[Line]:
    if event.tool in TOOLS_WITH_OWN_EVENTS and event.status == "ok":
        return []
    changed = diffs.is_diff(event.shown)
    if event.call_id in known.previewed:
        # The question above it shows what it is about.
        word = "" if event.status != "ok" else "applied" if changed else "done"
        back = line(("dim", "   /undo undoes it")) if word == "applied" else ()
        rows = tool_line(word, "", (*tool_result(event), *back), width)
        return rows if changed else rows + body_lines(event.shown, width)
    tool = SHORT_TOOL_NAMES.get(event.tool, event.tool)
    rows = tool_line(tool, known.calls.get(event.call_id, ""), tool_result(event), width)
    return rows + body_lines(event.shown, width)


def tool_result(event: ToolFinished) -> Line:
    """The end of a tool's line: its result, red where it was refused or failed."""
    if event.status == "ok":
        return line(("dim", event.summary)) if event.summary else ()
    word = {"cancelled": "stopped"}.get(event.status, event.status)
    if event.error is None:
        return line(("bad", word), f"  {event.summary}" if event.summary else "")
    text = " ".join(event.error.message.split())
    if event.error.reason in FIXABLE_BY_MODEL:
        text = SENTENCE.split(text, maxsplit=1)[0]
    return line(("bad", word), f"  {event.error.reason}: {text}")


def body_lines(text: str, width: int) -> list[Line]:
    """The lines below a tool's line: a diff, or text without its middle when it is long."""
    if not text.strip():
        return []
    if diffs.is_diff(text):
        return cap_lines([fit_line(row, width) for row in diffs.render_diff(text)], DIFF_LINES)
    room, lines = width - len(BODY_INDENT), text.rstrip().split("\n")
    return cap_lines([line(("dim", BODY_INDENT + fit(one, room))) for one in lines], BODY_LINES)


def fit_line(content: Line, width: int) -> Line:
    pieces, left = list[Piece](), width
    for style, text in content:
        pieces.append(Piece(style, fit(text, left)))
        left -= len(pieces[-1].text)
    return tuple(pieces)


def cap_lines(rows: list[Line], limit: int) -> list[Line]:
    """At most so many lines: the start, how many are left out, and the end."""
    if len(rows) <= limit:
        return rows
    first = limit // 3
    last = limit - first - 1
    left_out = line(("dim", f"{BODY_INDENT}… {len(rows) - first - last} more lines"))
    return [*rows[:first], left_out, *rows[-last:]]


def check_lines(event: CheckFinished | CandidateTried, width: int) -> list[Line]:
    return (
        candidate_tried(event, width) if isinstance(event, CandidateTried) else check_finished(event, width)
    )


def candidate_tried(event: CandidateTried, width: int) -> list[Line]:
    """An answer of a small model, and what came of it; of hundreds of small edits, those that help."""
    if event.asked == "mutation" and event.result == "failed":
        return []
    where = f"{event.path}:{event.line}" if event.line else event.path
    tests = f", {event.passing} of {event.total} tests pass" if event.total > 1 else ""
    change = f" `{event.change}`" if event.change else ""
    asked = "small edit" if event.asked == "mutation" else event.asked
    text = f"{event.number} {asked} {where}{change}: {event.result}{tests}"
    return note("answer", text, width, "good" if event.result in ("passed", "better") else "dim")


def check_finished(event: CheckFinished, width: int) -> list[Line]:
    """Green is for verified, and for nothing else."""
    verdict = Piece("good", "passes") if event.passed else Piece("bad", "fails")
    rows = tool_line("check", "", (verdict, Piece("dim", f"  {event.summary}")), width)
    return rows if event.passed else rows + body_lines(event.content, width)


def note(name: str, text: str, width: int, style: str = "dim") -> list[Line]:
    """`  name      text`, wrapped below itself."""
    head = f"{INDENT}{name:<{NAME_COLUMNS - 1}} "
    return wrap(line(("dim", head), (style, " ".join(text.split()))), width, " " * len(head))
