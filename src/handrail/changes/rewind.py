"""Plan a rewind, undo or redo: which change sets it undoes."""

from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.undo import Plan, plan_undo
from handrail.protocol.errors import UsageProblem
from handrail.sessions.change_history import (
    PastChange,
    RewindPoint,
    find_change,
    find_rewind_point,
    session_changes,
)
from handrail.sessions.session_state import RedoableRewind, SessionState
from handrail.storage.event_log import Log
from handrail.workspace.files import Workspace

NOT_IN_PLACE = {
    "unfinished": "has no outcome yet: opening its session settles it",
    "elsewhere": "was made where the session was imported from, not here",
}


class RewindPlan(NamedTuple):
    plan: Plan
    point: RewindPoint
    detail: str = ""
    """For the user: what is not undone because it was never in place, or is not recorded."""


def plan_rewind(log: Log, workspace: Workspace, session_id: str, to: str, request_id: str = "") -> RewindPlan:
    """Undo everything from a change set or a message on; the rewind of this request may have begun."""
    point = find_rewind_point(log, session_id, to)
    later = [change for change in session_changes(log, session_id) if change.seq > point.seq]
    here = [change.prepared for change in later if change.in_place]
    plan = plan_undo(log, workspace, here)
    begun = {each.change_id for each in here if each.by == "rollback" and each.request_id == request_id}
    undone = tuple(each for each in plan.takes_back if each not in begun)
    return RewindPlan(replace(plan, takes_back=undone), point, _not_covered(later))


def plan_rollback(log: Log, workspace: Workspace, session_id: str, to: str) -> RewindPlan:
    """Undo one change set; raises UsageProblem where it is not in place."""
    changes = session_changes(log, session_id)
    change = find_change(changes, to)
    match change.status:
        case "applied":
            plan = plan_undo(log, workspace, [change.prepared])
            return RewindPlan(plan, find_rewind_point(log, session_id, change.id), _not_covered([change]))
        case "taken back":
            raise UsageProblem(f"{change.id} was already undone, by {change.taken_back_by}.")
        case "not applied":
            raise UsageProblem(f"{change.id} was never applied, so there is nothing to undo. {change.why}")
        case _:
            raise UsageProblem(f"{change.id} {NOT_IN_PLACE[change.status]}.")


def last_rewind(state: SessionState) -> RedoableRewind:
    """The rewind that a redo undoes; raises UsageProblem where there is none, or it is too late."""
    if not state.rewinds:
        raise UsageProblem("There is no undo or rewind left to redo.")
    last = state.rewinds[-1]
    if last.answered and last.keep is not None:
        files = f" To get its files back, rewind {last.change_id} alone." if last.change_id else ""
        raise UsageProblem(
            "The conversation went on after the rewind, so the removed part cannot come back." + files
        )
    return last


def plan_redo(log: Log, workspace: Workspace, session_id: str, last: RedoableRewind) -> Plan:
    """Undo what the rewind did, also what it had to remove first, in a change set of its own."""
    changes = [
        change
        for change in session_changes(log, session_id)
        if change.id == last.change_id
        or (change.prepared.by == "rollback" and change.prepared.request_id == last.request_id)
    ]
    return plan_undo(log, workspace, [change.prepared for change in changes if change.status == "applied"])


def _not_covered(changes: list[PastChange]) -> str:
    lines = [f"{change.id} was never applied" for change in changes if change.status == "not applied"]
    lines += [
        f"{change.id} {NOT_IN_PLACE[change.status]}" for change in changes if change.status in NOT_IN_PLACE
    ]
    lines += [
        f"{change.prepared.unlisted:,} more files that changed with {change.id} are not recorded"
        for change in changes
        if change.prepared.unlisted and change.in_place
    ]
    return "; ".join(lines)
