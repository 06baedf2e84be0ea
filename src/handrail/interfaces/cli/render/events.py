"""Every event as the lines that a person is shown."""

import json
import re
from collections.abc import Sequence

from handrail.interfaces.cli.render import styles, tool_calls
from handrail.interfaces.cli.render.approvals import approval_preview, break_line
from handrail.interfaces.cli.render.markdown import render_markdown
from handrail.interfaces.cli.render.rewind_preview import rewind_summary
from handrail.interfaces.cli.render.styles import BODY_INDENT, INDENT, Line, Piece, line, wrap
from handrail.interfaces.cli.render.tool_calls import RenderContext, note, tool_line
from handrail.protocol import events
from handrail.protocol.plan import plan_as_text
from handrail.protocol.values import NextStep, Todo

ARGUMENT_CHARS = 300
SECTION = re.compile(r"\*\*(.+)\*\*")
MARKER = re.compile(r" *(?:(?:[-a-z]|\d{1,2}\.) +)?")


def suggested_commands_note(commands: Sequence[str], width: int) -> list[Line]:
    if len(commands) == 1:
        return note("run", "1 command: /run shows it, /run 1 runs it", width)
    ways = "/run lists them, /run 2 runs one, /run all runs all"
    return note("run", f"{len(commands)} commands: {ways}", width)


def command_list_lines(commands: Sequence[str], width: int) -> list[Line]:
    """Every command in full, with invisible characters spelled out."""
    rows, columns = list[Line](), len(str(len(commands)))
    for number, command in enumerate(commands, start=1):
        head = Piece("accent", f"{INDENT}{number:>{columns}} ")
        below = Piece("dim", " " * len(head.text))
        first, *others = command.split("\n")
        lines = [(head, Piece("", first)), *((below, Piece("", other)) for other in others)]
        rows += [part for row in lines for part in break_line(row, width)]
    return rows


def next_step_lines(steps: Sequence[NextStep], width: int) -> list[Line]:
    """Each step with the whole text that it would send: a label alone can promise anything."""
    texts = [step.label if step.label == step.input else f"{step.label}: {step.input}" for step in steps]
    numbered = (f"{number}. {text}" for number, text in enumerate(texts, start=1))
    return [row for text in numbered for row in text_lines(text, width)]


def batch_lines(
    event: events.BatchStep | events.BatchDecided | events.BatchFinished, width: int
) -> list[Line]:
    match event:
        case events.BatchDecided(decision="replace"):
            return note("instead", f"{event.command}{f' ({event.why})' if event.why else ''}", width)
        case events.BatchDecided() | events.BatchStep(total=1):
            return []
        case events.BatchFinished(total=1, end="completed"):
            return []
    well = isinstance(event, events.BatchStep) or (event.end == "completed" and not event.failed)
    counts = f"{event.succeeded} succeeded · {event.failed} failed · {event.remaining} remaining"
    return note("all", f"{event.number}/{event.total} · {counts}", width, "dim" if well else "bad")


def hook_lines(event: events.HookSpoke | events.SessionHooked, width: int) -> list[Line]:
    """What a hook did. A denied call is not shown here: the line of the call says so."""
    match event:
        case events.SessionHooked():
            return note("hook", f"the model was told: {event.text}", width) if event.text else []
        case events.HookSpoke(did="changed"):
            shown = styles.shorten(json.dumps(event.arguments, ensure_ascii=False), ARGUMENT_CHARS)
            text = f"{event.hook} changed the arguments of {event.tool} to {shown}"
            return note("hook", text, width, "bold")
        case events.HookSpoke(did="told"):
            return note("hook", f"{event.hook} told the model: {event.text}", width)
        case events.HookSpoke(did="demanded"):
            return note("hook", f"{event.hook} does not let the turn end: {event.text}", width, "bold")
        case events.HookSpoke(did="failed") if event.on != "before_tool":
            return note("hook", f"{event.hook} failed: {event.text}", width, "bad")
        case _:
            return []


def run_lines(event: events.Event, width: int) -> list[Line]:
    """Routes, and stages, pauses and results of a run; nothing for what the user chose or sees anyway."""
    match event:
        case events.StageStarted(kind="ask" | "code"):
            at = f"{event.number} of {event.of}: " if event.of > 1 else ""
            return note("stage", f"{at}{event.stage}", width)
        case events.RunStarted(budget=budget) if budget:
            return note("budget", f"{event.pipeline}: at most {budget}", width)
        case events.GateFailed():
            return note("gate", f"{event.stage}: {'; '.join(event.issues)}", width, "bad")
        case events.RunRepaired():
            through = event.first if event.first == event.last else f"{event.first} to {event.last}"
            return note("again", f"{through}, repair {event.number}", width)
        case events.RunContinued():
            return note("continues", f"with the next steps, round {event.number}", width)
        case events.RunPaused() | events.BreakoutPending():
            return text_lines(event.text, width, "bold")
        case events.RunCompleted(text=text) if text:
            return text_lines(text, width)
        case events.RunFailed(reason="unverified"):
            return note("proposal", "to see and apply it: /accept, or `handrail build --accept`", width)
        case events.RunBrokenOff():
            return note("run", "left; what it found is kept", width)
        case events.RouteSet():
            return note("route", event.route, width)
        case events.Routed(route=""):
            rows = note("which?", event.decision.question, width, "accent")
            for number, option in enumerate(event.decision.options, start=1):
                rows += note("", f"{number}  {option.title}", width)
            return rows
        case events.Routed(by="model"):
            return note("route", f"{event.route} ({event.decision.confidence:.0%} sure)", width)
        case events.Routed(by="fallback"):
            return note("route", f"{event.route}: the model named no route; /route chooses one", width)
        case _:
            return []


def plan_lines(event: events.Event, width: int) -> list[Line]:
    """The step that is begun, and what the user did with the plan; the model's is the result of its run."""
    match event:
        case events.StageCompleted(stage="next", output={"number": at, "total": of, "description": what}):
            return note("step", f"{at} of {of}: {what}", width, "bold")
        case events.AutoContinueSet():
            return note("auto", "on" if event.on else "off", width)
        case events.PlanChanged(by="user"):
            rows = text_lines(plan_as_text(event.plan), width)
            return rows + note("plan", "changed; /plan approve follows it", width)
        case events.PlanApproved():
            return note("plan", "approved", width)
        case _:
            return []


def text_lines(text: str, width: int, style: str = "") -> list[Line]:
    """The text, indented; headings in bold, and what follows `-`, `1.` or a letter below its beginning."""
    rows: list[Line] = []
    for each in text.split("\n"):
        heading = SECTION.fullmatch(each)
        hang = INDENT + " " * (found.end() if (found := MARKER.match(each)) else 0)
        shown = ("bold", f"{INDENT}{heading[1]}") if heading else (style, f"{INDENT}{each}")
        rows += wrap(line(shown), width, hang)
    return rows


def event_lines(event: events.Event, known: RenderContext, width: int) -> list[Line]:
    """What the user sees of an event; nothing for the many that only programs need."""
    match event:
        case events.UserMessage():
            return user_message(event, width)
        case events.ToolFinished():
            return tool_calls.tool_finished(event, known, width)
        case events.ApprovalAsked():
            return approval_preview(event, width)
        case events.ApprovalAnswered():
            return approval_answered(event, known, width)
        case events.QuestionAsked():
            return question_asked(event, width)
        case events.TodosChanged():
            return todo_lines(event.todos, width)
        case events.TodoCompleted():
            return todo_completed(event, known, width)
        case events.TurnFinished():
            return turn_finished(event, known, width)
        case events.RunCompleted() if event.text.strip() in known.written:
            return note("result", f"the text of {known.written[event.text.strip()]}, shown above", width)
        case events.RunCompleted() if event.run_id == known.agent_run:
            rows = render_markdown(event.text, width - len(INDENT), colour=known.colour)
            return [(Piece("", INDENT), *row) for row in rows]
        case events.Rewound():
            return note("undone", f"{rewind_summary(event, known.going_back)}; /redo undoes this", width)
        case events.Redone():
            return note("redone", rewind_summary(event, known.going_back), width)
        case _:
            return run_lines(event, width) or plan_lines(event, width) or other_event_lines(event, width)


def parts_words(requests: int, answers: int, outputs: int) -> str:
    """`120 parts of requests, 14 raw answers and 2 outputs`."""
    return f"{requests:,} parts of requests, {answers:,} raw answers and {outputs:,} outputs"


def other_event_lines(event: events.Event, width: int) -> list[Line]:
    match event:
        case events.RequestFailed() if event.retry_in is not None:
            text = f"{event.message.rstrip('.')}; trying again in {styles.format_duration(event.retry_in)}"
            return note("model", text, width)
        case events.PruneAnnounced() | events.Pruned():
            what = parts_words(event.requests, event.answers, event.outputs)
            size = styles.format_bytes(event.size)
            if isinstance(event, events.Pruned):
                return note("storage", f"deleted as announced: {what}, {size}", width)
            text = f"full: the end of this turn deletes the oldest {what}, {size}, which no rewind needs"
            return note("storage", f"{text}. A larger `storage.megabytes` keeps them.", width, "bad")
        case events.Nudged():
            return note("note", f"the model was told: {event.text}", width)
        case events.QuestionAnswered() if event.by == "user":
            return note("answer", event.answer, width, "accent")
        case events.CheckFinished() | events.CandidateTried():
            return tool_calls.check_lines(event, width)
        case events.BackgroundEnded():
            style = "dim" if event.code == 0 or event.how in ("stopped", "session") else "bad"
            return note(event.background_id, f"{event.command}: {event.summary}", width, style)
        case events.IntentSelected(by="user"):
            rows = note("intent", event.intent_id or "none", width)
            return [*rows, *(row for text in event.warnings for row in note("", text, width, "bad"))]
        case events.HookSpoke() | events.SessionHooked():
            return hook_lines(event, width)
        case events.BatchStep() | events.BatchDecided() | events.BatchFinished():
            return batch_lines(event, width)
        case events.AttemptStarted() if event.number > 1:
            how = f"{event.number}, from the same files, at temperature {event.temperature:g}"
            return note("attempt", how, width)
        case events.ChangeAbandoned():
            return note("change", f"not made: {event.why}", width, "bad")
        case events.Compacted():
            return compacted(event, width)
        case events.CompactionUndone():
            return note("compacted", "undone: the model sees the full older turns again", width)
        case _:
            return session_event_lines(event, width)


def compacted(event: events.Compacted, width: int) -> list[Line]:
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
    return rows + note("", "/compact show shows it, /compact undo undoes it", width)


def session_event_lines(event: events.Event, width: int) -> list[Line]:
    match event:
        case events.StructuredOutputChanged():
            way = {"json": "JSON mode", "prompt": "the prompt alone"}.get(event.way, "a schema")
            text = f"{event.model} did not answer in the form it was asked for; from now on by {way}"
            return note("model", text, width)
        case events.RewindRefused():
            return note("refused", event.why, width, "bad")
        case events.CopyKept():
            text = f"somebody wrote to {event.path} at that moment; what they wrote is in {event.copy_path}"
            return note("copy", text, width, "bold")
        case events.ModeSet():
            return note("mode", event.mode, width)
        case events.ModelSet():
            return note("model", f"{event.model} ({event.why})" if event.why else event.model, width)
        case events.SessionRenamed():
            return note("title", event.title, width)
        case events.Committed():
            where = f"on {event.branch}" if event.branch else "on no branch: `git switch -c NAME` keeps it"
            what = f"{event.subject} ({styles.count_of(len(event.files), 'file')}; no hooks run)"
            rows = note("committed", f"{event.commit[:9]} {where}: {what}", width)
            return rows + [row for text in event.notes for row in note("", text, width)]
        case events.CommitRefused() if event.why:
            return note("commit", event.why, width, "bad")
        case events.SessionStatusSet():
            return note("session", event.status.replace("_", " "), width)
        case events.SessionLabelled():
            return note("labels", ", ".join(event.labels) or "none", width)
        case events.SessionDeleted():
            return note("session", "deleted; `handrail sessions restore ID` restores it", width)
        case events.SessionRestored():
            return note("session", "restored", width)
        case _:
            return []


def user_message(event: events.UserMessage, width: int) -> list[Line]:
    rows: list[Line] = []
    for number, text in enumerate(event.text.rstrip().split("\n")):
        mark = Piece("accent", "> " if number == 0 else "  ")
        rows += wrap((mark, Piece("bold", text)), width, INDENT)
    again = [seen.path for seen in event.files if seen.how == "auto"]
    names = [seen.path for seen in event.files if seen.how != "auto"]
    names += [f"{image.name} ({image.described})" for image in event.images]
    if names:
        rows += note("attached", ", ".join(names), width)
    if again:
        text = f"{', '.join(again)} changed since the model last looked; it now sees the new text"
        rows += note("updated", text, width)
    return rows + unattached_lines(event, width)


def unattached_lines(event: events.UserMessage, width: int) -> list[Line]:
    return [row for text in event.unattached for row in note("left out", text, width, "bold")]


TURN_ENDS = {
    "cancelled": ("bold", "stopped"),
    "budget": ("bad", "limit reached"),
    "stuck": ("bad", "stuck"),
    "failed": ("bad", "failed"),
    "waiting": ("bold", "waiting"),
    "interrupted": ("bad", "interrupted"),
    "unverified": ("bad", "unverified"),
    "escalated": ("bold", "needs you"),
}


def turn_finished(event: events.TurnFinished, known: RenderContext, width: int) -> list[Line]:
    """How the turn ended, where it was not just answered, and its time, tokens and cost."""
    detail = event.detail.partition(f": {known.gate_issue}")[0] if known.gate_issue else event.detail
    seconds, cost = styles.format_duration(event.seconds), styles.format_usd(event.cost_usd)
    figures = line(("dim", f"{seconds}   {styles.format_usage(event.usage)}   {cost}"))
    end = line(("dim", detail))
    if event.reason in TURN_ENDS:
        end = line(TURN_ENDS[event.reason], f"  {detail}" if detail else "")
    *above, last = wrap(end, width, INDENT)
    return [*above, *styles.side_by_side(last, figures, width)]


def approval_answered(event: events.ApprovalAnswered, known: RenderContext, width: int) -> list[Line]:
    asked = known.asked.get(event.approval_id)
    if event.decision == "always" and asked:
        return note("allowed", f"{asked.tool} {asked.summary}: always in this session", width)
    if event.decision == "allow" and asked:
        return note("allowed", f"`{asked.entry}`: from now on, in your settings", width)
    return []


def question_asked(event: events.QuestionAsked, width: int) -> list[Line]:
    rows = wrap(line(("bold", f"  {event.question}")), width, INDENT)
    for number, option in enumerate(event.options, start=1):
        rows += wrap(line("  ", ("accent", str(number)), f" {option}"), width, " " * 4)
    return rows


def todo_lines(items: tuple[Todo, ...], width: int) -> list[Line]:
    done = sum(todo.done for todo in items)
    rows = tool_line("todos", f"{done} of {len(items)} done" if items else "none", (), width)
    for todo in items:
        mark = Piece("good", "x") if todo.done else Piece("accent", "-")
        text = Piece("dim" if todo.done else "", f" {todo.text}")
        rows += wrap((Piece("", BODY_INDENT), mark, text), width, BODY_INDENT + "  ")
    return rows


def todo_completed(event: events.TodoCompleted, known: RenderContext, width: int) -> list[Line]:
    text = next((todo.text for todo in known.todos if todo.id == event.todo_id), event.todo_id)
    by = "" if event.by == "user" else f" (by a {event.by})"
    return note("todo", f"done: {text}{by}", width)
