"""A session's changes: list, diff, rewind, redo, commit, and the space they take."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import anyio
from msgspec.structs import replace

from handrail.changes.apply import apply_when_free
from handrail.changes.change_set import ChangeSet
from handrail.changes.crash_recovery import file_steps
from handrail.changes.diff import Diff, diff
from handrail.changes.rewind import last_rewind, plan_redo, plan_rewind, plan_rollback
from handrail.changes.undo import FilePlan, Plan, undo_change_set
from handrail.protocol.commands import CommitChanges, Redo, Rewind
from handrail.protocol.errors import HandrailError, PathProblem, Undecided, UsageProblem
from handrail.protocol.events import (
    ChangeApplied,
    ChangePrepared,
    CommitRefused,
    Committed,
    Redone,
    RewindRefused,
    Rewound,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import FileChange
from handrail.sessions.change_history import PastChange, find_change, message_of_turn, session_changes
from handrail.sessions.session import Session, event_from_row
from handrail.sessions.storage_use import SpareContents, StorageUse, measure_storage, prune
from handrail.storage.event_log import Log
from handrail.tools.git_commit import FileToCommit, commit_files
from handrail.workspace.editor import look
from handrail.workspace.file_step import FileStep, is_special
from handrail.workspace.files import Workspace, decode_lossy
from handrail.workspace.paths import printable

if TYPE_CHECKING:
    from handrail.workspace.scratch_copy.copies import ScratchCopies

ALL_LINES = 1_000_000  # diffs are shown in full


class ShownFile(NamedTuple):
    file: FileChange
    diff: Diff | None  # None where a version is no longer stored


class ShownChange(NamedTuple):
    change: PastChange
    files: tuple[ShownFile, ...]


class RewindPlan(NamedTuple):
    plan: Plan
    event: Rewound | Redone


class NetChange(NamedTuple):
    path: str
    diff: Diff | None  # None where the older content is no longer stored
    why: str = ""  # why the diff also contains changes by others, where it does


class ChangeHistory(NamedTuple):
    """Queries about changes. A rewind itself is a command to the session's holder."""

    log: Log
    workspace: Workspace
    limit: int  # bytes of stored contents

    def changes(self, session_id: str) -> list[PastChange]:
        """All change sets of a session, oldest first."""
        return session_changes(self.log, session_id)

    def find(self, session_id: str, change: str = "") -> PastChange:
        """The change set with this number, id or end of an id; empty: the last one."""
        return find_change(self.changes(session_id), change)

    def before_turn(self, session_id: str, number: int) -> Rewind:
        """The command that rewinds files and conversation to before a turn."""
        return Rewind(to=message_of_turn(self.log, session_id, number), conversation=True)

    def show(self, session_id: str, change: str = "") -> ShownChange:
        found = self.find(session_id, change)
        return ShownChange(found, tuple(ShownFile(file, self._diff(file)) for file in found.prepared.files))

    def plan(self, session_id: str, command: Rewind | Redo) -> Plan:
        """What a rewind or redo would do to files now; changes nothing."""
        return self.going_back(session_id, command).plan

    def going_back(self, session_id: str, command: Rewind | Redo) -> RewindPlan:
        """The same, with the event that would record it."""
        return plan_rewind_command(Session(self.log, session_id).load(), self.workspace, command)

    def net(self, session_id: str, since: str) -> list[NetChange]:
        """The net changes of a session since a change set, without those by others."""
        changes = self.changes(session_id)
        first = find_change(changes, since).number
        plan = self.plan(session_id, Rewind(to=since))
        later = [change.prepared for change in changes[first - 1 :] if change.in_place]
        return [self._net(file, later) for file in plan.files]

    def storage(self) -> StorageUse:
        return measure_storage(self.log, self.limit)

    def prune(self) -> SpareContents:
        """Delete the oldest unneeded contents until the rest is within the limit."""
        return prune(self.log, self.limit)

    def scratch_copies(self) -> "ScratchCopies":
        from handrail.workspace.scratch_copy.copies import COPIES, ScratchCopies

        return ScratchCopies(self.workspace, self.log.folder / COPIES)

    def _diff(self, file: FileChange) -> Diff | None:
        old, new = (self.log.blob(each) if each else None for each in (file.old_sha256, file.new_sha256))
        if (file.old_sha256 and old is None) or (file.new_sha256 and new is None):
            return None
        return _net_change(file.destination or file.path, old, new)

    def _net(self, file: FilePlan, changes: Sequence[ChangePrepared]) -> NetChange:
        if file.kind in ("restore", "merge"):
            return NetChange(file.path, _net_change(file.path, file.then, file.now.data))
        steps = [step for change in changes for step in file_steps(change) if step.path == file.exact]
        before = self.log.blob(steps[0].old) if steps[0].old else None
        if file.kind == "lost" or (steps[0].old and before is None):
            return NetChange(file.path, None, file.why)
        return NetChange(file.path, _net_change(file.path, before, file.now.data), file.why)


def _net_change(path: str, old: bytes | None, new: bytes | None) -> Diff:
    if b"\0" in (old or b"") or b"\0" in (new or b""):
        return Diff(f"Binary files {path} differ", 0, 0)
    before, after = (None if data is None else decode_lossy(data) for data in (old, new))
    return diff(path, before, after, shown_lines=ALL_LINES)


# Rewind and redo: one event records them, and takes the command out of the inbox


async def carry_out_rewind(
    session: Session, workspace: Workspace, command: Rewind | Redo, number: int
) -> None:
    """Rewind or redo in full, or record why nothing was done."""
    try:
        plan, event = await _plan_now(session, workspace, command)
        change_set = _change_set(plan, command)
        before = session.state.paused
        if plan.first and change_set:
            with ExitStack() as held:
                first = await apply_when_free(held, session, workspace, change_set, emptied=plan.emptied)
                session.append(first)
            plan, event = await _plan_now(session, workspace, command)
            change_set = _change_set(plan, command)
        if change_set is None:
            session.append(event, take=[number])
        else:
            with ExitStack() as held:
                applied = await apply_when_free(held, session, workspace, change_set, emptied=plan.emptied)
                session.append(applied, replace(event, change_id=applied.change_id), take=[number])
        # The menu of a paused run is shown again, so that numbers refer to what was shown last.
        run = session.state.paused
        if (
            run
            and run.pause
            and (before is None or (before.pause, before.leaving) != (run.pause, run.leaving))
        ):
            session.append(run.leaving or run.pause)
    except (Undecided, UsageProblem, PathProblem) as problem:
        session.append(_refusal(command, problem), take=[number])
    except OSError as error:
        why = UsageProblem(f"Nothing was changed: {error.strerror or error}.")
        session.append(_refusal(command, why), take=[number])


async def _plan_now(session: Session, workspace: Workspace, command: Rewind | Redo) -> RewindPlan:
    """The plan by what the files hold now, unsaved text in an editor included."""
    found = plan_rewind_command(session, workspace, command)
    if workspace.editor is None:
        return found
    await look(workspace, session.id, [path for paths in found.plan.paths.values() for path in paths])
    return plan_rewind_command(session, workspace, command)


def _change_set(plan: Plan, command: Rewind | Redo) -> ChangeSet | None:
    return undo_change_set(plan, accept=command.accept, leave=command.leave, request_id=command.request_id)


def plan_rewind_command(session: Session, workspace: Workspace, command: Rewind | Redo) -> RewindPlan:
    """What a rewind or redo would do, and the event that would record it; changes nothing."""
    if isinstance(command, Redo):
        last = last_rewind(session.state)
        talk = last.keep is not None
        redone = Redone(request_id=command.request_id, rewind_id=last.request_id, conversation=talk)
        return RewindPlan(plan_redo(session.log, workspace, session.id, last), redone)
    where = (session.log, workspace, session.id, command.to)
    planned = plan_rollback(*where) if command.only else plan_rewind(*where, command.request_id)
    left = f"left as they are: {', '.join(command.leave)}" if command.leave else ""
    rewound = Rewound(
        request_id=command.request_id,
        keep=planned.point.keep if command.conversation else None,
        turns=planned.point.turns,
        detail="; ".join(filter(None, (planned.detail, left))) if command.files else "",
    )
    return RewindPlan(planned.plan if command.files else Plan((), ()), rewound)


def _refusal(command: Rewind | Redo, problem: HandrailError) -> RewindRefused:
    conflicts = problem.conflicts if isinstance(problem, Undecided) else ()
    return RewindRefused(request_id=command.request_id, why=str(problem), conflicts=conflicts)


# Commits to git: when the user asks for one, or after each change set if they have set it so

NAMED_FILES = 3
VERBS = {(False, True): "Add", (True, True): "Change", (True, False): "Delete", (False, False): "Change"}
"""By whether the file existed before, and exists after."""


class AppliedChange(NamedTuple):
    change: ChangePrepared
    seq: int


async def commit_changes(session: Session, workspace: Workspace, command: CommitChanges, number: int) -> None:
    """Commit all change sets since the last commit as one; the outcome is an event."""
    with anyio.CancelScope(shield=True):  # what is in git is in the log too
        sets = uncommitted_changes(session)
        event = await _commit(session, workspace, sets, command.message, command.request_id)
        session.append(event, take=[number])


async def commit_each_change(session: Session, workspace: Workspace) -> None:
    """Commit each change set since the last commit on its own, without those that were undone."""
    sets = uncommitted_changes(session)
    wanted = _still_applied(sets)
    with anyio.CancelScope(shield=True):
        events = [
            await _commit(session, workspace, [each], "", new_id("g"))
            for each in sets
            if each.change.change_id in wanted
        ]
        session.append(*events or [CommitRefused(request_id=new_id("g"), why="")])


def uncommitted_changes(session: Session) -> list[AppliedChange]:
    """Change sets that were applied since the session's last commit, oldest first."""
    begun: dict[str, ChangePrepared] = {}
    applied: list[AppliedChange] = []
    for row in session.log.read(session.stream, after=session.state.committed):
        if row.type in ("change_prepared", "change_applied"):
            event = event_from_row(row).event
            if isinstance(event, ChangePrepared):
                begun[event.change_id] = event
            elif isinstance(event, ChangeApplied) and event.change_id in begun:
                applied.append(AppliedChange(begun.pop(event.change_id), row.seq))
    return applied


async def _commit(
    session: Session, workspace: Workspace, sets: Sequence[AppliedChange], words: str, request_id: str
) -> Committed | CommitRefused:
    try:
        if not sets:
            raise UsageProblem("Nothing was changed in this session since its last commit.")
        files, lost = _net_files(session, workspace, sets)
        message = _commit_message(words, sets, files)
        made = await commit_files(workspace, files, message)
    except UsageProblem as problem:
        return CommitRefused(request_id=request_id, why=str(problem))
    return Committed(
        request_id=request_id,
        commit=made.commit,
        branch=made.branch,
        subject=message.splitlines()[0],
        change_ids=tuple(_still_applied(sets)),
        upto=sets[-1].seq,
        files=made.files,
        notes=(*made.notes, *lost),
    )


def _still_applied(sets: Sequence[AppliedChange]) -> list[str]:
    """Ids of the change sets that were neither undone nor undo another one of them."""
    undone = {each for change, _ in sets for each in change.takes_back}
    ids = {change.change_id for change, _ in sets}
    return [
        change.change_id
        for change, _ in sets
        if change.change_id not in undone and not (change.takes_back and ids.issuperset(change.takes_back))
    ]


def _net_files(
    session: Session, workspace: Workspace, sets: Sequence[AppliedChange]
) -> tuple[list[FileToCommit], list[str]]:
    first: dict[str, FileStep] = {}
    last: dict[str, FileStep] = {}
    for change, _ in sets:
        for step in file_steps(change):
            first.setdefault(step.path, step)
            last[step.path] = step
    files, lost = [], []
    ignored = {file.path for change, _ in sets for file in change.files if file.ignored}
    for path, step in last.items():
        if printable(path) in ignored or (first[path].old, first[path].old_mode) == (step.new, step.new_mode):
            continue
        data = session.log.blob(step.new) if step.new else None
        if step.new and data is None and workspace.sha256(path) == step.new:
            data = workspace.read(path).data  # only the content before a command's change is stored
        base = session.log.blob(first[path].old) if first[path].old else None
        if is_special(step.new_mode) or is_special(first[path].old_mode) or printable(path) != path:
            lost.append(f"{printable(path)} is left out: it is no regular file, or its name is not UTF-8.")
        elif step.new and data is None:
            lost.append(f"{path} is left out: its content is no longer stored.")
        else:
            files.append(FileToCommit(path, base, data, step.new_mode))
    return files, lost


def _commit_message(words: str, sets: Sequence[AppliedChange], files: Sequence[FileToCommit]) -> str:
    verbs = {VERBS[file.base is not None, file.data is not None] for file in files}
    names = ", ".join(file.path for file in files[:NAMED_FILES])
    more = f" and {len(files) - NAMED_FILES} more" if len(files) > NAMED_FILES else ""
    by_files = f"{verbs.pop() if len(verbs) == 1 else 'Change'} {names}{more}"
    intents = (change.intent for change, _ in sets if change.intent)
    subject = words.strip() or next(intents, by_files)
    models = dict.fromkeys(change.model for change, _ in sets if change.model)
    trailers = [f"Change-Set: {change_id}" for change_id in _still_applied(sets)]
    trailers += [f"Assisted-by: handrail ({model})" for model in models] or ["Assisted-by: handrail"]
    return f"{subject}\n\n" + "\n".join(trailers) + "\n"
