"""Committing what a session changed, when the user asks for it or has asked for it once and for all."""

from collections.abc import Sequence
from typing import NamedTuple

import anyio

from handrail.changes.journal import steps_of
from handrail.protocol.commands import CommitChanges
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ChangeApplied, ChangePrepared, CommitRefused, Committed
from handrail.protocol.ids import new_id
from handrail.sessions.handle import Session, recorded
from handrail.tools.committing import commit_files
from handrail.tools.repository import Wanted
from handrail.workspace.files import Workspace
from handrail.workspace.found import Step

NAMED_FILES = 3
NOTHING = "Nothing was changed in this session since its last commit."
VERBS = {(False, True): "Add", (True, True): "Change", (True, False): "Delete", (False, False): "Change"}
"""By whether there was a file before, and is one after."""


class Applied(NamedTuple):
    """A change set, and the event that says it was applied."""

    change: ChangePrepared
    seq: int


async def commit(session: Session, workspace: Workspace, command: CommitChanges, number: int) -> None:
    """Commit all change sets since the last commit as one; the outcome is an event."""
    with anyio.CancelScope(shield=True):  # what is in git is in the log too
        sets = uncommitted(session)
        event = await _commit(session, workspace, sets, command.message, command.request_id)
        session.append(event, take=[number])


async def commit_each(session: Session, workspace: Workspace) -> None:
    """Commit every change set since the last commit on its own; what was taken back meanwhile is none."""
    sets = uncommitted(session)
    wanted = _in_force(sets)
    with anyio.CancelScope(shield=True):
        events = [
            await _commit(session, workspace, [each], "", new_id("g"))
            for each in sets
            if each.change.change_id in wanted
        ]
        session.append(*events or [CommitRefused(request_id=new_id("g"), why="")])


def uncommitted(session: Session) -> list[Applied]:
    """Change sets that were applied since the session's last commit, oldest first."""
    begun: dict[str, ChangePrepared] = {}
    applied: list[Applied] = []
    for row in session.log.read(session.stream, after=session.state.committed):
        if row.type in ("change_prepared", "change_applied"):
            event = recorded(row).event
            if isinstance(event, ChangePrepared):
                begun[event.change_id] = event
            elif isinstance(event, ChangeApplied) and event.change_id in begun:
                applied.append(Applied(begun.pop(event.change_id), row.seq))
    return applied


async def _commit(
    session: Session, workspace: Workspace, sets: Sequence[Applied], words: str, request_id: str
) -> Committed | CommitRefused:
    try:
        if not sets:
            raise UsageProblem(NOTHING)
        files, lost = _files(session, workspace, sets)
        message = _message(words, sets, files)
        made = await commit_files(workspace, files, message)
    except UsageProblem as problem:
        return CommitRefused(request_id=request_id, why=str(problem))
    return Committed(
        request_id=request_id,
        commit=made.commit,
        branch=made.branch,
        subject=message.splitlines()[0],
        change_ids=tuple(_in_force(sets)),
        upto=sets[-1].seq,
        files=made.files,
        notes=(*made.notes, *lost),
    )


def _in_force(sets: Sequence[Applied]) -> list[str]:
    """Ids of those that were not taken back again, nor take back what is among them."""
    undone = {each for change, _ in sets for each in change.takes_back}
    ids = {change.change_id for change, _ in sets}
    return [
        change.change_id
        for change, _ in sets
        if change.change_id not in undone and not (change.takes_back and ids.issuperset(change.takes_back))
    ]


def _files(session: Session, workspace: Workspace, sets: Sequence[Applied]) -> tuple[list[Wanted], list[str]]:
    """What the sets come to, one a path, and what is not kept any more."""
    first: dict[str, Step] = {}
    last: dict[str, Step] = {}
    for change, _ in sets:
        for step in steps_of(change):
            first.setdefault(step.path, step)
            last[step.path] = step
    files, lost = [], []
    for path, step in last.items():
        data = _content(session, workspace, path, step.new)
        base = session.log.blob(first[path].old) if first[path].old else None
        if step.new and data is None:
            lost.append(f"{path} is left out: what it was then is not kept.")
        elif first[path].old != step.new or first[path].old_mode != step.new_mode:
            files.append(Wanted(path, base, data, step.new_mode))
    return files, lost


def _content(session: Session, workspace: Workspace, path: str, sha256: str) -> bytes | None:
    if not sha256:
        return None
    kept = session.log.blob(sha256)
    if kept is None and workspace.sha256(path) == sha256:
        return workspace.read(path).data  # of a command's change only what was before is kept
    return kept


def _message(words: str, sets: Sequence[Applied], files: Sequence[Wanted]) -> str:
    subject = (
        words.strip() or next((change.intent for change, _ in sets if change.intent), "") or _subject(files)
    )
    models = dict.fromkeys(change.model for change, _ in sets if change.model)
    trailers = [f"Change-Set: {change_id}" for change_id in _in_force(sets)]
    trailers += [f"Assisted-by: handrail ({model})" for model in models] or ["Assisted-by: handrail"]
    return f"{subject}\n\n" + "\n".join(trailers) + "\n"


def _subject(files: Sequence[Wanted]) -> str:
    verbs = {VERBS[file.base is not None, file.data is not None] for file in files}
    names = ", ".join(file.path for file in files[:NAMED_FILES])
    more = f" and {len(files) - NAMED_FILES} more" if len(files) > NAMED_FILES else ""
    return f"{verbs.pop() if len(verbs) == 1 else 'Change'} {names}{more}"
