"""Applying a change so that a crash at any instant leaves old or new, and the log can tell which."""

from handrail.changes.proposal import Proposal
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, Event
from handrail.protocol.ids import new_id
from handrail.protocol.values import FileChange
from handrail.sessions.handle import Session
from handrail.workspace.files import Workspace
from handrail.workspace.writer import create_file, discard_temporary, replace_file


def apply(
    session: Session, workspace: Workspace, proposal: Proposal, *, turn_id: str, call_id: str
) -> ChangeApplied:
    """Write the file; the event is the caller's to commit, together with the end of its call.

    The order: is the file still what the proposal is based on, both contents and the intention into the log,
    the same question again, the write.
    """
    _check_still(workspace, proposal)
    prepared = ChangePrepared(
        turn_id=turn_id, change_id=new_id("c"), call_id=call_id, files=(proposal.change,)
    )
    blobs = [proposal.new] if proposal.op == "create" else [proposal.old, proposal.new]
    session.append(prepared, blobs=blobs)
    try:
        _write(workspace, proposal, prepared.change_id)
    except (OSError, PathProblem):
        outcome = outcome_of(prepared, workspace)
        if isinstance(outcome, ChangeApplied):
            return outcome
        session.append(outcome)
        raise
    return ChangeApplied(change_id=prepared.change_id)


def recover(session: Session, workspace: Workspace) -> list[Event]:
    """What became of the change sets that were begun and have no outcome, for the caller to commit."""
    return [outcome_of(prepared, workspace) for prepared in session.state.files.prepared.values()]


def outcome_of(prepared: ChangePrepared, workspace: Workspace) -> ChangeApplied | ChangeAbandoned:
    """What the files themselves say of a change set, by their hashes."""
    for file in prepared.files:
        discard_temporary(workspace.root, file.path, prepared.change_id)
    states = {file.path: _state_of(file, workspace) for file in prepared.files}
    if set(states.values()) == {"new"}:
        return ChangeApplied(change_id=prepared.change_id)
    if set(states.values()) == {"old"}:
        why = "The change was not made: the files are as they were before it."
    else:
        found = "; ".join(f"{path} is {state}" for path, state in states.items())
        why = f"Conflict: somebody else changed a file meanwhile ({found}). It was left as it is."
    return ChangeAbandoned(change_id=prepared.change_id, why=why)


def _state_of(file: FileChange, workspace: Workspace) -> str:
    found = workspace.sha256(file.path) or ""
    if found == file.new_sha256:
        return "new"
    return "old" if found == file.old_sha256 else "neither the old nor the new version"


def _check_still(workspace: Workspace, proposal: Proposal) -> None:
    found = workspace.sha256(proposal.path) or ""
    if found != proposal.change.old_sha256:
        raise PathProblem(
            f"{proposal.path} was changed by somebody else just now. Read it again, then repeat the change.",
            "stale_file",
            proposal.path,
        )


def _write(workspace: Workspace, proposal: Proposal, change_id: str) -> None:
    if proposal.op == "create":
        create_file(workspace.root, proposal.path, proposal.new, change_id=change_id)
    else:
        old = proposal.change.old_sha256
        replace_file(workspace.root, proposal.path, proposal.new, old_sha256=old, change_id=change_id)
