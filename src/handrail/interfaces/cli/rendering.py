"""Events as lines of styled text: pure functions. What streams is in `screen.py`."""

from dataclasses import dataclass, field
from typing import Any

from handrail.interfaces.cli import diffs
from handrail.interfaces.cli.approvals import asked_lines
from handrail.interfaces.cli.figures import duration, tokens, usd
from handrail.interfaces.cli.going_back import outcome
from handrail.interfaces.cli.styles import (
    ACCENT,
    BAD,
    BODY_INDENT,
    BOLD,
    DIM,
    GOOD,
    INDENT,
    NAME_COLUMNS,
    PLAIN,
    Line,
    Piece,
    beside,
    fit,
    line,
    wrap,
)
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    AttemptStarted,
    ChangeAbandoned,
    ChangePrepared,
    CheckFinished,
    CommitRefused,
    Committed,
    Compacted,
    CompactionUndone,
    CopyKept,
    Event,
    ModelSet,
    ModeSet,
    Nudged,
    QuestionAnswered,
    QuestionAsked,
    Redone,
    RequestFailed,
    RewindRefused,
    Rewound,
    SessionDeleted,
    SessionRenamed,
    SessionRestored,
    TodoCompleted,
    TodosChanged,
    ToolFinished,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.values import Todo

WHAT_COLUMNS = 24
BODY_LINES = 16
DIFF_LINES = 60
TELLING = ("path", "command", "pattern", "query", "url", "question")
"""Arguments that say best what a call is about."""
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


def lines_of(event: Event, known: Known, width: int) -> list[Line]:
    """What a person is shown of an event; nothing for the many that only others need."""
    match event:
        case UserMessage():
            return user_message(event, width)
        case ToolFinished():
            return tool_finished(event, known, width)
        case ApprovalAsked():
            return asked_lines(event, width)
        case ApprovalAnswered():
            return approval_answered(event, known, width)
        case QuestionAsked():
            return question_asked(event, width)
        case TodosChanged():
            return todos(event.todos, width)
        case TodoCompleted():
            return todo_completed(event, known, width)
        case TurnFinished():
            return turn_finished(event, width)
        case Rewound() | Redone() | RewindRefused() | CopyKept():
            return went_back(event, known, width)
        case _:
            return other_event(event, width)


def other_event(event: Event, width: int) -> list[Line]:
    match event:
        case RequestFailed() if event.retry_in is not None:
            text = f"{event.message.rstrip('.')}; trying again in {duration(event.retry_in)}"
            return note("model", text, width)
        case Nudged():
            return note("note", f"the model was told: {event.text}", width)
        case QuestionAnswered() if event.by == "user":
            return note("answer", event.answer, width, ACCENT)
        case CheckFinished():
            return check_finished(event, width)
        case AttemptStarted() if event.number > 1:
            what = f" at {event.rewrite.name or event.rewrite.path}" if event.rewrite else ""
            how = f"{event.number}{what}, from the same files, at temperature {event.temperature:g}"
            return note("attempt", how, width)
        case ChangeAbandoned():
            return note("change", f"not made: {event.why}", width, BAD)
        case Compacted():
            return compacted(event, width)
        case CompactionUndone():
            return note("compacted", "undone: the model sees the full older turns again", width)
        case _:
            return session_event(event, width)


def compacted(event: Compacted, width: int) -> list[Line]:
    """That it happened, what is kept, who wrote it, and how to take it back."""
    kept = event.kept
    counts = {
        "message": len(kept.said) + bool(kept.asked),
        "decision": len(kept.decisions),
        "changed file": len(kept.files),
        "failed attempt": len(kept.failed),
        "open todo": len(kept.todos),
    }
    names = ["the goal", *(f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count)]
    if event.by:
        names.append(f"notes by {event.by}")
    size = f"older turns: {event.tokens_before:,} tokens are now {event.tokens_after:,}"
    rows = note("compacted", f"{size}; kept: {', '.join(names)}", width)
    if event.problem:
        rows += note("", f"no notes by the model: {event.problem}", width)
    return rows + note("", "/compact show shows it, /compact undo takes it back", width)


def session_event(event: Event, width: int) -> list[Line]:
    match event:
        case ModeSet():
            return note("mode", event.mode, width)
        case ModelSet():
            return note("model", f"{event.model} ({event.why})" if event.why else event.model, width)
        case SessionRenamed():
            return note("title", event.title, width)
        case Committed():
            return committed(event, width)
        case CommitRefused() if event.why:
            return note("commit", event.why, width, BAD)
        case SessionDeleted():
            return note("session", "deleted; `handrail sessions restore ID` brings it back", width)
        case SessionRestored():
            return note("session", "restored", width)
        case _:
            return []


def committed(event: Committed, width: int) -> list[Line]:
    """What was committed where, and what the user may not expect."""
    where = f"on {event.branch}" if event.branch else "on no branch: `git switch -c NAME` keeps it"
    count = f"{len(event.files)} file{'s' * (len(event.files) != 1)}"
    rows = note("committed", f"{event.commit[:9]} {where}: {event.subject} ({count}; no hooks run)", width)
    return rows + [row for text in event.notes for row in note("", text, width)]


def went_back(event: Rewound | Redone | RewindRefused | CopyKept, known: Known, width: int) -> list[Line]:
    """What came of a rewind, an undo or a redo."""
    match event:
        case RewindRefused():
            return note("refused", event.why, width, BAD)
        case CopyKept():
            text = f"somebody wrote to {event.path} at that moment; what they wrote is in {event.copy_path}"
            return note("copy", text, width, BOLD)
        case Rewound():
            return note("undone", f"{outcome(event, known.going_back)}; /redo undoes this", width)
        case Redone():
            return note("redone", outcome(event, known.going_back), width)


def check_finished(event: CheckFinished, width: int) -> list[Line]:
    """Green is for verified, and for nothing else."""
    verdict = Piece(GOOD, "passes") if event.passed else Piece(BAD, "fails")
    rows = tool_line("check", "", (verdict, Piece(DIM, f"  {event.summary}")), width)
    return rows if event.passed else rows + body(event.content, width)


# Messages and turns


def user_message(event: UserMessage, width: int) -> list[Line]:
    rows: list[Line] = []
    for number, text in enumerate(event.text.rstrip().split("\n")):
        mark = Piece(ACCENT, "> " if number == 0 else "  ")
        rows += wrap((mark, Piece(BOLD, text)), width, INDENT)
    again = [seen.path for seen in event.files if seen.how == "auto"]
    names = [seen.path for seen in event.files if seen.how != "auto"]
    names += [f"{image.name} ({image.described})" for image in event.images]
    if names:
        rows += note("attached", ", ".join(names), width)
    if again:
        rows += note("updated", f"the model sees {', '.join(again)} as changed since", width)
    return rows + unattached(event, width)


def unattached(event: UserMessage, width: int) -> list[Line]:
    """What was mentioned, and the model was not given."""
    return [row for text in event.unattached for row in note("left out", text, width, BOLD)]


ENDS = {
    "cancelled": (BOLD, "stopped"),
    "budget": (BAD, "limit reached"),
    "stuck": (BAD, "stuck"),
    "failed": (BAD, "failed"),
    "waiting": (BOLD, "waiting"),
    "interrupted": (BAD, "interrupted"),
    "unverified": (BAD, "unverified"),
}


def turn_finished(event: TurnFinished, width: int) -> list[Line]:
    """How the turn ended, where it was not simply answered, and what it took."""
    figures = line((DIM, f"{duration(event.seconds)}   {tokens(event.usage)}   {usd(event.cost_usd)}"))
    if event.reason not in ENDS:
        said = line((DIM, event.detail))
    else:
        style, word = ENDS[event.reason]
        said = line((style, word), f"  {event.detail}" if event.detail else "")
    *above, last = wrap(said, width, INDENT)
    return [*above, *beside(last, figures, width)]


# Tools


def about(arguments: dict[str, Any]) -> str:
    """One line that tells what a call is about, for a call that never started."""
    named = [arguments[name] for name in TELLING if isinstance(arguments.get(name), str)]
    texts = named or [value for value in arguments.values() if isinstance(value, str)]
    return " ".join(texts[0].split()) if texts else ""


def tool_line(tool: str, what: str, result: Line, width: int) -> list[Line]:
    """`  read      src/cart.py               88 lines`; a long result goes on below itself."""
    head = Piece(DIM, f"{INDENT}{tool:<{NAME_COLUMNS}}")
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
    rows = tool_line(event.tool, known.calls.get(event.call_id, ""), result_of(event), width)
    return rows + body(event.shown, width)


def result_of(event: ToolFinished) -> Line:
    """The end of a tool's line: what came of it, red where it was refused or failed."""
    if event.status == "ok":
        return line((DIM, event.summary)) if event.summary else ()
    word = {"cancelled": "stopped"}.get(event.status, event.status)
    if event.error is None:
        return line((BAD, word), f"  {event.summary}" if event.summary else "")
    return line((BAD, word), f"  {event.error.reason}: {' '.join(event.error.message.split())}")


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


# Asking


def approval_answered(event: ApprovalAnswered, known: Known, width: int) -> list[Line]:
    asked = known.asked.get(event.approval_id)
    if event.decision == "always" and asked:
        return note("allowed", f"{asked.tool} {asked.summary}: always in this session", width)
    if event.decision == "allow" and asked:
        return note("allowed", f"`{asked.entry}`: from now on, in your settings", width)
    return []


def question_asked(event: QuestionAsked, width: int) -> list[Line]:
    rows = wrap(line((BOLD, f"  {event.question}")), width, INDENT)
    for number, option in enumerate(event.options, start=1):
        rows += wrap(line("  ", (ACCENT, str(number)), f" {option}"), width, " " * 4)
    return rows


# Lists and notes


def todos(items: tuple[Todo, ...], width: int) -> list[Line]:
    """The list with what is done."""
    done = sum(todo.done for todo in items)
    rows = tool_line("todos", f"{done} of {len(items)} done" if items else "none", (), width)
    for todo in items:
        mark = Piece(GOOD, "x") if todo.done else Piece(ACCENT, "-")
        text = Piece(DIM if todo.done else PLAIN, f" {todo.text}")
        rows += wrap((Piece(PLAIN, BODY_INDENT), mark, text), width, BODY_INDENT + "  ")
    return rows


def todo_completed(event: TodoCompleted, known: Known, width: int) -> list[Line]:
    text = next((todo.text for todo in known.todos if todo.id == event.todo_id), event.todo_id)
    by = "" if event.by == "user" else f" (by a {event.by})"
    return note("todo", f"done: {text}{by}", width)


def note(name: str, text: str, width: int, style: str = DIM) -> list[Line]:
    """`  name      text`, wrapped below itself."""
    head = f"{INDENT}{name:<{NAME_COLUMNS}}"
    return wrap(line((DIM, head), (style, " ".join(text.split()))), width, " " * len(head))
