"""Takes over a session after a crash: closes what the last holder left open, repeats nothing."""

import hashlib

from msgspec.structs import replace

from handrail.changes.crash_recovery import COPIES_FOLDER, recover
from handrail.engine.requests.model_requests import unread_answer
from handrail.engine.turn_end import (
    OUTCOME_UNKNOWN,
    Ending,
    batch_end,
    run_end,
    turn_finished,
    unfinished_call,
)
from handrail.protocol.events import (
    Answered,
    BackgroundEnded,
    ChangeApplied,
    Event,
    SideAnswered,
    SubagentFinished,
    SubagentStarted,
    TodoCompleted,
    ToolFinished,
)
from handrail.sessions.session import Session
from handrail.sessions.session_state import SessionState
from handrail.sessions.subagent_session import SubagentSession
from handrail.sessions.turn_state import CallState, TurnState
from handrail.storage.event_log import Log
from handrail.storage.locks import HeldLock
from handrail.workspace.files import Workspace

INTERRUPTED_TURN = Ending(
    "interrupted",
    "Handrail ended in the middle of this turn. What was done is above; /continue goes on from there.",
)
RESUMABLE = (
    'Handrail ended while this sub-agent ran. `subagent` with resume="{name}" goes on where it stopped.'
)
NOT_RUN = "Not run: Handrail ended first. Repeat it if it is still needed."


def take_over(session: Session, workspace: Workspace, lock: HeldLock | None = None) -> None:
    """Close what was interrupted. A turn that waits for the user or can resume by itself stays open."""
    record_interrupted_commands(session.log, workspace, session)
    events: list[Event] = list(recover(session, workspace, lock=lock))
    events += _completed_todos(session, events)
    received = session.log.received(session.stream)
    settled = {partial.message for partial in session.log.partials(session.stream)} | set(received)
    turn = session.state.turn
    events += [
        BackgroundEnded(
            background_id=each.id, command=each.command, how="interrupted", summary="stopped with Handrail"
        )
        for each in session.state.background.running.values()
    ]
    if side := session.state.side:
        raw = session.state.side_raw or _sha256(received.get(side, b""))
        events.append(SideAnswered(request_id=side, problem="Handrail ended first.", raw=raw))
    if turn:
        stays = session.state.approvals or session.state.questions or resumes_by_itself(session.state)
        if not (stays and unread_answer(session)):  # that one is read, and not asked for again
            events += _interrupted_answer(session, turn, received)
        for child in _open_subagents(session):
            events += _interrupted_subagent(child, received, stays=bool(stays))
            child.close()
        for state in turn.unfinished():
            name = _subagent_of(session.state, "", state.call.id)
            if (state.status == "started" and not (stays and name)) or not stays:
                recorded = any(each.call_id == state.call.id for each in session.turn.made)
                events.append(_interrupted_call(turn, state, name, recorded=recorded))
        if not stays:
            events += batch_end(turn, INTERRUPTED_TURN)
            events += run_end(session.state.run, session.log.blob, INTERRUPTED_TURN)
            events.append(turn_finished(turn, INTERRUPTED_TURN, seconds=0.0))
    events += _unshown_menu(session.state)
    if events or settled:
        session.append(*events, settle=settled, blobs=[data for data in received.values() if data])


def record_interrupted_commands(log: Log, workspace: Workspace, held: Session | None = None) -> None:
    """Record what commands in mode `sandbox` had changed before their Handrail was killed."""
    if (log.folder / COPIES_FOLDER).is_dir():
        from handrail.tools.commands.file_changes import record_interrupted

        record_interrupted(log, workspace, held)


def resumes_by_itself(state: SessionState) -> bool:
    """Whether the turn resumes by itself after a restart: all do, except those in which the model works.

    Whoever killed Handrail during work may have had a reason.
    """
    if state.turn is None:
        return False
    if run := state.run:
        return not run.conversational or bool(run.open and run.open.kind == "answer")
    return state.turn.unrouted or bool(state.paused and state.paused.run_id == state.turn.run_id)


def _unshown_menu(state: SessionState) -> list[Event]:
    """The menu of a run that a rewind restored, if it was not shown since."""
    run = state.paused
    menu = (run.leaving or run.pause) if run else None
    if run is None or menu is None:
        return []
    restored = any(rewind.keep is not None and rewind.upto > run.menu for rewind in state.rewinds)
    return [menu] if restored else []


def _completed_todos(session: Session, recovered: list[Event]) -> list[Event]:
    prepared = session.state.files.prepared
    applied = [prepared.get(event.change_id) for event in recovered if isinstance(event, ChangeApplied)]
    named = {todo for change in applied if change for todo in change.todos}
    still_open = [todo.id for todo in session.state.todos if not (todo.done or todo.command)]
    return [TodoCompleted(todo_id=todo, by="change") for todo in still_open if todo in named]


def _interrupted_answer(session: Session, turn: TurnState, received: dict[str, bytes]) -> list[Event]:
    """What was shown of the answer, with all bytes of it that came."""
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
            raw=turn.request.raw or _sha256(received.get(turn.request.request_id, b"")),
            apart=turn.request.apart,
        )
    ]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""


def can_resume(subagent_id: str) -> str:
    """For the model: how to go on with an interrupted sub-agent."""
    return RESUMABLE.format(name=subagent_id)


def _open_subagents(session: Session) -> list[SubagentSession]:
    """The sub-agents that were running, the deepest first."""
    running = [one for one in session.state.subagents.values() if not one.interrupted]
    starts = [session.read_after(one.seq - 1, 1)[0].event for one in reversed(running)]
    return [SubagentSession(session, start).open() for start in starts if isinstance(start, SubagentStarted)]


def _subagent_of(state: SessionState, parent: str, call_id: str) -> str:
    """The running sub-agent that a call started; empty: none."""
    running = [(name, one) for name, one in state.subagents.items() if not one.interrupted]
    return next((name for name, one in running if (one.parent, one.call_id) == (parent, call_id)), "")


def _interrupted_subagent(child: SubagentSession, received: dict[str, bytes], *, stays: bool) -> list[Event]:
    """What was open in its context; its turn stays open, so that it can go on."""
    events: list[Event] = []
    if turn := child.state.turn:
        if not (stays and unread_answer(child)):
            events += _interrupted_answer(child, turn, received)
        for state in turn.unfinished():
            name = _subagent_of(child.root.state, child.id_inside, state.call.id)
            if state.status == "started" and not (stays and name):
                recorded = any(each.call_id == state.call.id for each in turn.made)
                events.append(_interrupted_call(turn, state, name, recorded=recorded))
    if side := child.state.side:
        raw = child.state.side_raw or _sha256(received.get(side, b""))
        events.append(SideAnswered(request_id=side, problem="Handrail ended first.", raw=raw))
    outer = [child.outer_event(event) for event in events]
    if not stays:
        outer.append(SubagentFinished(child.id_inside, replace(child.finished(), detail="Handrail ended.")))
    return outer


def _interrupted_call(turn: TurnState, state: CallState, subagent: str, *, recorded: bool) -> ToolFinished:
    if state.status != "started":
        return unfinished_call(turn.turn_id, state.call, "interrupted", NOT_RUN)
    if subagent:
        return unfinished_call(turn.turn_id, state.call, "interrupted", can_resume(subagent), "interrupted")
    message = f"{OUTCOME_UNKNOWN} Check before repeating it."
    if state.call.name == "run" and recorded:
        message += " The files that changed since it began are recorded, so a rewind restores them."
    elif state.call.name == "run":
        message += " The files it changed are not recorded, so a rewind does not restore them."
    return unfinished_call(turn.turn_id, state.call, "interrupted", message, "interrupted")
