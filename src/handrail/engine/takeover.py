"""Taking over a session: what the last holder left unfinished is closed, and nothing is done twice."""

from handrail.changes.recovery import recover
from handrail.engine.ending import Ending
from handrail.engine.pipeline.ends import run_end
from handrail.protocol.errors import ToolError
from handrail.protocol.events import (
    Answered,
    BackgroundEnded,
    ChangeApplied,
    Event,
    SideAnswered,
    TodoCompleted,
    ToolFinished,
    TurnFinished,
)
from handrail.protocol.events.batches import BatchEnd
from handrail.protocol.values import FinishReason
from handrail.sessions.background import InBackground
from handrail.sessions.handle import Session
from handrail.sessions.state import State
from handrail.sessions.turn_state import CallState, TurnState
from handrail.tools.base import error_json
from handrail.workspace.files import Workspace

BATCH_ENDS: dict[FinishReason, BatchEnd] = {"cancelled": "cancelled", "interrupted": "interrupted"}
ENDED = "Handrail ended in the middle of this turn. What was done is above; /continue goes on from there."


def take_over(session: Session, workspace: Workspace) -> None:
    """Bring the log to rest. A turn that waits for the user's word, or can go on by itself, stays open."""
    events: list[Event] = list(recover(session, workspace))
    events += _completed(session, events)
    settled = {partial.message for partial in session.log.partials(session.stream)}
    turn = session.state.turn
    events += [interrupted_command(each) for each in session.state.background.running.values()]
    if session.state.side:
        events.append(SideAnswered(request_id=session.state.side, problem="Handrail ended first."))
    if turn:
        events += _interrupted_answer(session, turn)
        stays = session.state.approvals or session.state.questions or resumes(session.state)
        for state in turn.unfinished():
            if state.status == "started" or not stays:
                events.append(interrupted_call(turn, state))
        if not stays:
            events += ended_batch(turn, "interrupted", ENDED)
            events += run_end(session.state.run, session.log.blob, Ending("interrupted", ENDED))
            events.append(close_turn(turn, "interrupted", ENDED, seconds=0.0))
    events += _unshown_menu(session.state)
    if events or settled:
        session.append(*events, settle=settled)


def resumes(state: State) -> bool:
    """Whether the turn goes on by itself after a restart: all do but those in which the model works.

    Who pulls the plug on work may have a reason.
    """
    if state.turn is None:
        return False
    if run := state.run:
        return not run.conversational or bool(run.open and run.open.kind == "answer")
    return state.turn.unrouted or bool(state.paused and state.paused.run_id == state.turn.run_id)


def _unshown_menu(state: State) -> list[Event]:
    """What a run asks that a rewind brought back, where nobody was shown it since."""
    run = state.paused
    asks = (run.leaving or run.pause) if run else None
    if run is None or asks is None:
        return []
    back = any(rewind.keep is not None and rewind.upto > run.menu for rewind in state.rewinds)
    return [asks] if back else []


def _completed(session: Session, recovered: list[Event]) -> list[Event]:
    """What the user is told of todos that change sets have completed after all."""
    prepared = session.state.files.prepared
    applied = [prepared.get(event.change_id) for event in recovered if isinstance(event, ChangeApplied)]
    named = {todo for change in applied if change for todo in change.todos}
    still_open = [todo.id for todo in session.state.todos if not todo.done]
    return [TodoCompleted(todo_id=todo, by="change") for todo in still_open if todo in named]


def _interrupted_answer(session: Session, turn: TurnState) -> list[Event]:
    if turn.request is None:
        return []
    text: dict[str, str] = {"text": "", "thinking": ""}
    for partial in session.log.partials(session.stream):
        if partial.message == turn.request.message_id:
            text[partial.kind] += partial.text
    return [
        Answered(
            turn_id=turn.turn_id,
            request_id=turn.request.request_id,
            message_id=turn.request.message_id,
            model=turn.request.model,
            text=text["text"],
            thinking=text["thinking"],
            end="interrupted",
            cost_usd=None,
            apart=turn.request.apart,
        )
    ]


def interrupted_call(turn: TurnState, state: CallState) -> ToolFinished:
    """The end of a call that has no other: it began and its outcome is not known, or it never began."""
    began = state.status == "started"
    message = (
        "Handrail ended while this ran: it may have happened in full, in part or not at all. Check before"
        " repeating it."
        if began
        else "Not run: Handrail ended first. Repeat it if it is still wanted."
    )
    if began and state.call.name == "run":
        message += " Which files it changed is not recorded, so that no rewind takes it back."
    error = ToolError(tool=state.call.name, reason="interrupted", message=message)
    return ToolFinished(
        turn_id=turn.turn_id,
        call_id=state.call.id,
        tool=state.call.name,
        status="interrupted",
        summary="interrupted" if began else "not run",
        content=error_json(error),
        error=error,
    )


def interrupted_command(command: InBackground) -> BackgroundEnded:
    """The end of a command in the background whose Handrail ended first: it ended with it."""
    return BackgroundEnded(
        background_id=command.id, command=command.command, how="interrupted", summary="stopped with Handrail"
    )


def ended_turn(session: Session, reason: FinishReason, detail: str, now: float) -> list[Event]:
    """The events that end a turn early: every call that will not run says so to the model."""
    turn = session.state.turn
    if turn is None:
        return []
    events: list[Event] = []
    for state in turn.unfinished():
        error = ToolError(tool=state.call.name, reason="cancelled", message=f"Not run: {detail}")
        events.append(
            ToolFinished(
                turn_id=turn.turn_id,
                call_id=state.call.id,
                tool=state.call.name,
                status="cancelled",
                summary="not run",
                content=error_json(error),
                error=error,
            )
        )
    events += ended_batch(turn, reason, detail)
    events += run_end(session.state.run, session.log.blob, Ending(reason, detail))
    return [*events, close_turn(turn, reason, detail, seconds=turn.seconds(now))]


def ended_batch(turn: TurnState, reason: FinishReason, detail: str) -> list[Event]:
    """The end of commands that the user had picked, where the turn ends before them."""
    if turn.batch is None or turn.batch.finished:
        return []
    return [turn.batch.closed(turn.turn_id, BATCH_ENDS.get(reason, "stopped"), detail)]


def close_turn(turn: TurnState, reason: FinishReason, detail: str, seconds: float) -> TurnFinished:
    """The event that ends a turn, with what it took."""
    return TurnFinished(
        turn_id=turn.turn_id,
        reason=reason,
        detail=detail,
        usage=turn.usage,
        cost_usd=turn.cost_usd if turn.cost_known else None,
        seconds=seconds,
        steps=turn.steps,
    )
