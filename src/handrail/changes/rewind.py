"""Which change sets going back means, and what came of them."""

from typing import NamedTuple

from handrail.changes.rollback import Plan, plan_back
from handrail.protocol.errors import UsageProblem
from handrail.sessions.changes import Change, Point, changes_of, find_change, point_before
from handrail.sessions.state import Aside, State
from handrail.storage.log import Log
from handrail.workspace.files import Workspace

WHY_NOT = {
    "unfinished": "has no outcome yet: it is settled when its session is opened",
    "elsewhere": "was made where the session was imported from, not here",
}


class GoingBack(NamedTuple):
    """What a rewind comes to, before anything is done."""

    plan: Plan
    point: Point
    detail: str = ""
    """For the user: what is not taken back because it never was in place, or is not recorded."""


def plan_rewind(log: Log, workspace: Workspace, session_id: str, to: str) -> GoingBack:
    """Everything from a change set or a message on."""
    point = point_before(log, session_id, to)
    later = [change for change in changes_of(log, session_id) if change.seq > point.seq]
    here = [change.prepared for change in later if change.in_place]
    return GoingBack(plan_back(log, workspace, here), point, _not_covered(later))


def plan_rollback(log: Log, workspace: Workspace, session_id: str, to: str) -> GoingBack:
    """One change set alone; raises UsageProblem where it is not in place."""
    changes = changes_of(log, session_id)
    change = find_change(changes, to)
    match change.status:
        case "applied":
            plan = plan_back(log, workspace, [change.prepared])
            return GoingBack(plan, point_before(log, session_id, change.id), _not_covered([change]))
        case "taken back":
            raise UsageProblem(f"{change.id} was taken back already, by {change.taken_back_by}.")
        case "not applied":
            raise UsageProblem(
                f"{change.id} was never applied, so there is nothing to take back. {change.why}"
            )
        case _:
            raise UsageProblem(f"{change.id} {WHY_NOT[change.status]}.")


def last_rewind(state: State) -> Aside:
    """The rewind that a redo takes back; raises UsageProblem where there is none, or it is too late."""
    if not state.rewinds:
        raise UsageProblem("Nothing was rewound that could be redone.")
    last = state.rewinds[-1]
    if last.answered and last.keep is not None:
        files = f" Its files can: rewind {last.change_id} alone." if last.change_id else ""
        raise UsageProblem(
            "The conversation has gone on since the rewind, so what was set aside cannot come back." + files
        )
    return last


def plan_redo(log: Log, workspace: Workspace, session_id: str, last: Aside) -> Plan:
    """What taking back the last rewind does to files."""
    changes = [change for change in changes_of(log, session_id) if change.id == last.change_id]
    return plan_back(log, workspace, [change.prepared for change in changes if change.status == "applied"])


def _not_covered(changes: list[Change]) -> str:
    lines = [f"{change.id} was never applied" for change in changes if change.status == "not applied"]
    lines += [f"{change.id} {WHY_NOT[change.status]}" for change in changes if change.status in WHY_NOT]
    lines += [
        f"{change.prepared.unlisted:,} more files that changed with {change.id} are not recorded"
        for change in changes
        if change.prepared.unlisted and change.in_place
    ]
    return "; ".join(lines)
