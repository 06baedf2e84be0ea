"""Events that the client has no form for, each as a line of text."""

from handrail.protocol import events
from handrail.protocol.plan import plan_as_text

TURN_ENDS = {
    "cancelled": "Stopped",
    "budget": "A limit is reached",
    "stuck": "Stuck",
    "failed": "Failed",
    "waiting": "Waiting for you",
    "interrupted": "Interrupted",
    "unverified": "Unverified",
    "escalated": "This needs you",
}
HOW_TO_STORE = (
    "Store it in a terminal, with `handrail credentials set {}`. What you type here is kept in the session, "
    "and the model sees it."
)


def note(event: events.Event) -> str:
    """What a person has to know about an event; empty for the many that only programs need."""
    return _answer_note(event) or _run_note(event) or _change_note(event) or _session_note(event)


def plain_text(event: events.Event) -> str:
    """What an event says in whole paragraphs: the result of a run, a question, a plan."""
    match event:
        case events.RunPaused() | events.BreakoutPending() | events.RunCompleted():
            return event.text
        case events.PlanChanged(by="user"):
            return f"{plan_as_text(event.plan)}\n\n`/plan approve` follows it."
        case events.Routed(route=""):
            options = (f"{number}. {each.title}" for number, each in enumerate(event.decision.options, 1))
            return "\n".join([event.decision.question, "", *options])
        case events.QuestionAsked():
            numbered = (f"{number}. {option}" for number, option in enumerate(event.options, 1))
            text = "\n".join([event.question, *(["", *numbered] if event.options else [])])
            return f"{text}\n\n{HOW_TO_STORE.format(event.secret)}" if event.secret else text
        case _:
            return ""


def turn_end(event: events.TurnFinished) -> str:
    """How the turn ended, where it was not just answered."""
    if event.reason not in TURN_ENDS:
        return ""
    return f"{TURN_ENDS[event.reason]}{f': {event.detail}' if event.detail else '.'}"


def _answer_note(event: events.Event) -> str:
    match event:
        case events.RequestFailed() if event.retry_in is not None:
            return f"{event.message.rstrip('.')}; trying again in {event.retry_in:.0f} s"
        case events.RequestFailed() if event.recovered:
            return "The answer broke off. /retry asks again, /continue goes on with what was recovered."
        case events.Answered() if event.recovered and not event.apart:
            return "The answer was cut off. /retry asks again, /continue goes on with what was recovered."
        case events.Answered() if event.blocked and not event.apart:
            return f"Not run, because the answer was cut off: {'; '.join(event.blocked)}"
        case _:
            return ""


def _run_note(event: events.Event) -> str:
    match event:
        case events.RunStarted(budget=budget) if budget:
            return f"{event.pipeline}: at most {budget}"
        case events.GateFailed():
            return f"{event.stage} was rejected: {'; '.join(event.issues)}"
        case events.RunRepaired():
            return f"Again from {event.first}, repair {event.number}"
        case events.RunContinued():
            return f"Goes on with the next steps, round {event.number}"
        case events.RunBrokenOff():
            return "Left; what the run found is kept"
        case events.Nudged():
            return f"The model was told: {event.text}"
        case events.AttemptStarted() if event.number > 1:
            return f"Attempt {event.number}, from the same files"
        case events.CheckFinished():
            return f"Check {'passed' if event.passed else 'failed'}: {event.summary}"
        case events.QuestionAnswered() if event.by == "user":
            return f"Answer: {event.answer}"
        case events.HookSpoke(did="told" | "demanded" | "failed"):
            return f"Your hook {event.hook} ({event.did}): {event.text}"
        case events.BatchFinished() if event.total > 1:
            return f"{event.succeeded} of {event.total} commands succeeded, {event.failed} failed"
        case events.BackgroundEnded():
            return f"{event.background_id} ({event.command}): {event.summary}"
        case _:
            return ""


def _change_note(event: events.Event) -> str:
    match event:
        case events.ChangeAbandoned():
            return f"Change not made: {event.why}"
        case events.CopyKept():
            return f"Somebody wrote to {event.path} at that moment; what they wrote is in {event.copy_path}"
        case events.Rewound():
            return f"Undone{f': {event.detail}' if event.detail else ''}. /redo undoes this."
        case events.Redone():
            return f"Redone{f': {event.detail}' if event.detail else ''}"
        case events.RewindRefused():
            return f"Nothing was undone: {event.why}"
        case events.Committed():
            return f"Committed {event.commit[:9]}: {event.subject}"
        case events.CommitRefused() if event.why:
            return f"Not committed: {event.why}"
        case _:
            return ""


def _session_note(event: events.Event) -> str:
    match event:
        case events.ModelSet():
            return f"Model: {event.model}"
        case events.RouteSet():
            return f"Route: {event.route}"
        case events.AutoContinueSet():
            return f"Requests in steps {'continue by themselves' if event.on else 'stop after each step'}"
        case events.PlanApproved():
            return "The plan is approved"
        case events.IntentSelected(by="user"):
            return "; ".join([f"Intent: {event.intent_id or 'none'}", *event.warnings])
        case events.Compacted():
            size = f"{event.tokens_before:,} tokens are now {event.tokens_after:,}"
            return f"Older turns are summarised: {size}. /compact show shows it, /compact undo undoes it."
        case events.CompactionUndone():
            return "The model sees the full older turns again"
        case events.PruneAnnounced():
            return "Storage is full: the end of this turn deletes the oldest contents that no rewind needs"
        case events.Pruned():
            return "The oldest contents that nothing needs were deleted, as announced"
        case _:
            return ""
