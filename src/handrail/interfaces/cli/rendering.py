"""Events as lines of styled text: pure functions. What streams is in `screen.py`."""

from handrail.interfaces.cli.approvals import asked_lines
from handrail.interfaces.cli.batches import batch_lines
from handrail.interfaces.cli.figures import duration, tokens, usd
from handrail.interfaces.cli.going_back import outcome
from handrail.interfaces.cli.hook_lines import hook_lines
from handrail.interfaces.cli.route_lines import route_lines
from handrail.interfaces.cli.run_lines import run_lines
from handrail.interfaces.cli.styles import (
    ACCENT,
    BAD,
    BODY_INDENT,
    BOLD,
    DIM,
    GOOD,
    INDENT,
    PLAIN,
    Line,
    Piece,
    beside,
    line,
    wrap,
)
from handrail.interfaces.cli.tool_lines import Known, check_finished, note, tool_finished, tool_line
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    AttemptStarted,
    BackgroundEnded,
    BatchDecided,
    BatchFinished,
    BatchStep,
    ChangeAbandoned,
    CheckFinished,
    CommitRefused,
    Committed,
    Compacted,
    CompactionUndone,
    CopyKept,
    Event,
    HookSpoke,
    IntentSelected,
    ModelSet,
    ModeSet,
    Nudged,
    QuestionAnswered,
    QuestionAsked,
    Redone,
    RequestFailed,
    RewindRefused,
    Rewound,
    Routed,
    RouteSet,
    RunCompleted,
    SessionDeleted,
    SessionHooked,
    SessionRenamed,
    SessionRestored,
    TodoCompleted,
    TodosChanged,
    ToolFinished,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.values import Todo


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
            return turn_finished(event, known, width)
        case RunCompleted() if event.text.strip() in known.written:
            return note("result", f"the text of {known.written[event.text.strip()]}, shown above", width)
        case Rewound() | Redone() | RewindRefused() | CopyKept():
            return went_back(event, known, width)
        case _:
            return run_lines(event, width) or other_event(event, width)


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
        case BackgroundEnded():
            style = DIM if event.code == 0 or event.how in ("stopped", "session") else BAD
            return note(event.background_id, f"{event.command}: {event.summary}", width, style)
        case IntentSelected(by="user"):
            return intent_selected(event, width)
        case Routed() | RouteSet():
            return route_lines(event, width)
        case HookSpoke() | SessionHooked():
            return hook_lines(event, width)
        case BatchStep() | BatchDecided() | BatchFinished():
            return batch_lines(event, width)
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


def intent_selected(event: IntentSelected, width: int) -> list[Line]:
    """Which one the user chose, and what they should know before work starts."""
    rows = note("intent", event.intent_id or "none", width)
    return [*rows, *(row for text in event.warnings for row in note("", text, width, BAD))]


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
        rows += note(
            "updated",
            f"{', '.join(again)} changed since the model last looked; it is shown the new text",
            width,
        )
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


def turn_finished(event: TurnFinished, known: Known, width: int) -> list[Line]:
    """How the turn ended, where it was not simply answered, and what it took."""
    detail = event.detail.partition(f": {known.wanting}")[0] if known.wanting else event.detail
    figures = line((DIM, f"{duration(event.seconds)}   {tokens(event.usage)}   {usd(event.cost_usd)}"))
    if event.reason not in ENDS:
        said = line((DIM, detail))
    else:
        style, word = ENDS[event.reason]
        said = line((style, word), f"  {detail}" if detail else "")
    *above, last = wrap(said, width, INDENT)
    return [*above, *beside(last, figures, width)]


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
