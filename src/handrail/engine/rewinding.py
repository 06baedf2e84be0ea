"""Rewind and redo: carried out by the session's holder, told by one event, the command gone with it."""

from handrail.changes.apply import applying
from handrail.changes.rewind import last_rewind, plan_redo, plan_rewind, plan_rollback
from handrail.changes.rollback import Plan, back
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.errors import HandrailError, PathProblem, Undecided, UsageProblem
from handrail.protocol.events import Redone, RewindRefused, Rewound
from handrail.sessions.handle import Session
from handrail.sessions.run_state import RunState
from handrail.workspace.files import Workspace


def rewind(session: Session, workspace: Workspace, command: Rewind | Redo, number: int) -> None:
    """Do it whole, or say why nothing was done."""
    try:
        _carry_out(session, workspace, command, number)
    except (Undecided, UsageProblem, PathProblem) as problem:
        session.append(_refusal(command, problem), take=[number])
    except OSError as error:
        why = UsageProblem(f"Nothing was taken back: {error.strerror or error}.")
        session.append(_refusal(command, why), take=[number])


def plan_of(session: Session, workspace: Workspace, command: Rewind | Redo) -> tuple[Plan, Rewound | Redone]:
    """What a rewind or a redo comes to, and the event that will tell of it; nothing is done."""
    if isinstance(command, Redo):
        last = last_rewind(session.state)
        said = last.keep is not None
        redone = Redone(request_id=command.request_id, rewind_id=last.request_id, conversation=said)
        return plan_redo(session.log, workspace, session.id, last), redone
    planned = plan_rollback if command.only else plan_rewind
    going = planned(session.log, workspace, session.id, command.to)
    left = f"left as they are: {', '.join(command.leave)}" if command.leave and command.files else ""
    rewound = Rewound(
        request_id=command.request_id,
        keep=going.point.keep if command.conversation else None,
        turns=going.point.turns,
        detail="; ".join(part for part in (going.detail if command.files else "", left) if part),
    )
    return going.plan if command.files else Plan((), ()), rewound


def _carry_out(session: Session, workspace: Workspace, command: Rewind | Redo, number: int) -> None:
    plan, event = plan_of(session, workspace, command)
    change_set = back(plan, accept=command.accept, leave=command.leave)
    before = session.state.paused
    if change_set is None:
        session.append(event, take=[number])
    else:
        with applying(session, workspace, change_set, emptied=plan.emptied) as applied:
            told = event.model_copy(update={"change_id": applied.change_id})
            session.append(applied, told, take=[number])
    _show_again(session, before)


def _show_again(session: Session, before: RunState | None) -> None:
    """The menu of the run that waits now, so that numbers mean what was shown last."""
    run = session.state.paused
    if run and run.pause and (before is None or (before.pause, before.leaving) != (run.pause, run.leaving)):
        session.append(run.leaving or run.pause)


def _refusal(command: Rewind | Redo, problem: HandrailError) -> RewindRefused:
    conflicts = problem.conflicts if isinstance(problem, Undecided) else ()
    return RewindRefused(request_id=command.request_id, why=str(problem), conflicts=conflicts)
