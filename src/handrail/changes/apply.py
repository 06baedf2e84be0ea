"""Applying a change set: all or none, and a crash at any instant leaves each file old or new.

The lock, and unfinished sets first (1); is every file the base (2); new contents beside the files (4); both
contents and the intention into the log (3, 5); the exchange of names (6); folders to the disk (7); the
outcome into the log (8), which the caller commits with what belongs to it; a last look at what was displaced
(9).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath

from handrail.changes.change_set import ChangeSet, FileEdit
from handrail.changes.journal import steps_of
from handrail.changes.recovery import discard, finish_unfinished, take_back, tidy
from handrail.changes.trace.blocks import changed_ranges
from handrail.changes.trace.file import trace_of
from handrail.changes.trace.writing import try_write, with_mark
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, Event
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import pack_event
from handrail.protocol.values import FileChange
from handrail.sessions.handle import Session
from handrail.storage.workspace_lock import Held, workspace_lock
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.files import Workspace
from handrail.workspace.found import Found
from handrail.workspace.writer import Writer

MOST_UNSYNCED = 100
"""Applied sets whose tidying up waits for the disk, at most."""


def apply(
    session: Session,
    workspace: Workspace,
    change_set: ChangeSet,
    *also: Event,
    emptied: Sequence[str] = (),
    disk: Disk = DISK,
) -> ChangeApplied:
    """Apply and commit, with other events in the same commit; raises PathProblem, and nothing has changed."""
    with applying(session, workspace, change_set, emptied=emptied, disk=disk) as applied:
        session.append(applied, *also)
    return applied


@contextmanager
def applying(
    session: Session,
    workspace: Workspace,
    change_set: ChangeSet,
    *,
    emptied: Sequence[str] = (),
    disk: Disk = DISK,
) -> Iterator[ChangeApplied]:
    """Apply; the event is the caller's to commit before the block ends. `emptied` folders go when empty."""
    writer = Writer(workspace.root, disk)
    with workspace_lock(session.log.folder, f"session {session.id}") as lock:
        finish_unfinished(session, writer, lock)
        prepared = _prepare(session, writer, lock, change_set, tuple(emptied))
        steps = steps_of(prepared)
        try:
            for step in steps:
                writer.forward(step)
            _sync(session, writer, prepared)
        except (OSError, PathProblem):
            why = take_back(writer, prepared, session.log)
            session.append(ChangeAbandoned(change_id=prepared.change_id, why=why))
            lock.clear()
            raise
        yield ChangeApplied(change_id=prepared.change_id)
        if prepared.change_id not in session.state.files.prepared:
            _tidy(session, writer, prepared)


def _prepare(
    session: Session,
    writer: Writer,
    lock: Held,
    change_set: ChangeSet,
    emptied: tuple[str, ...],
) -> ChangePrepared:
    """Everything up to the commit of the intention; where that fails, nothing is left behind."""
    origin = change_set.origin
    _check_paths(change_set.edits)
    bases = [_base(writer, edit, agreed=change_set.hard_links_agreed) for edit in change_set.edits]
    prepared = ChangePrepared(
        turn_id=origin.turn_id,
        change_id=new_id("c"),
        call_id=origin.call_id,
        files=tuple(_change(edit, base) for edit, base in zip(change_set.edits, bases, strict=True)),
        by=origin.by,
        takes_back=origin.takes_back,
        folders=_folders(writer, change_set.edits),
        emptied=emptied,
        model=origin.model,
        cost_usd=origin.cost_usd,
        intent=origin.intent,
        intent_id=origin.intent_id or session.state.intent,
        mutation_class=origin.mutation_class,
        mutation_problem=origin.mutation_problem,
        todos=origin.todos,
        request_id=origin.request_id or (session.state.turn.last_request if session.state.turn else ""),
    )
    prepared = with_mark(session, trace_of(writer, session.log), prepared)
    lock.note({"change": pack_event(prepared)})
    try:
        writer.make_folders(prepared.folders)
        prepared = _put(writer, prepared, change_set.edits)
        contents = {edit.old_sha256: edit.old for edit in change_set.edits}
        contents |= {edit.new_sha256: edit.new for edit in change_set.edits}
        session.append(prepared, blobs=[data for data in contents.values() if data is not None])
    except BaseException:
        discard(writer, prepared)
        with suppress(OSError):  # then the note stays, and the next one to come looks again
            writer.sync([*(step.path for step in steps_of(prepared)), *prepared.folders])
            lock.clear()
        raise
    return prepared


def _put(writer: Writer, prepared: ChangePrepared, edits: Sequence[FileEdit]) -> ChangePrepared:
    """The new contents beside the files; the event with the modes that they have."""
    contents = {edit.destination or edit.path: edit.new for edit in edits}
    modes = {}
    for step in steps_of(prepared):
        if step.new:
            modes[step.path] = writer.put(step, contents[step.path] or b"", step.new_mode)
    return prepared.model_copy(
        update={
            "files": tuple(
                file.model_copy(update={"new_mode": modes.get(file.destination or file.path)})
                for file in prepared.files
            )
        }
    )


def _base(writer: Writer, edit: FileEdit, *, agreed: bool) -> Found:
    """The file as it is, if it is what the edit starts from."""
    found = writer.look(edit.path)
    if found.sha256 != edit.old_sha256:
        raise PathProblem(
            f"{edit.path} was changed by somebody else just now. Read it again, then repeat the change.",
            "stale_file",
            edit.path,
        )
    if edit.destination and writer.look(edit.destination).sha256:
        raise PathProblem(f"{edit.destination} exists already.", "file_exists", edit.destination)
    if found.links > 1 and not agreed:
        raise PathProblem(
            f"{edit.path} has {found.links} names (hard links), and only this one would get the new content."
            " Ask the user whether that is wanted.",
            "hard_link",
            edit.path,
        )
    return found


def _change(edit: FileEdit, base: Found) -> FileChange:
    mode = edit.mode if edit.mode is not None else base.mode
    return FileChange(
        path=edit.path,
        op=edit.op,
        destination=edit.destination,
        old_sha256=edit.old_sha256,
        new_sha256=edit.new_sha256,
        old_mode=base.mode,
        new_mode=mode if edit.new is not None else None,
        added=edit.diff.added,
        removed=edit.diff.removed,
        matched=edit.matched,
        size=len(edit.new) if edit.new is not None else None,
        ranges=changed_ranges(edit.old, edit.new),
    )


def _check_paths(edits: Sequence[FileEdit]) -> None:
    counts = Counter(path for edit in edits for path in (edit.path, edit.destination) if path)
    for path, times in counts.items():
        if times > 1:
            message = f"{path} is changed {times} times in one set: make one change of it."
            raise PathProblem(message, "invalid_arguments", path)


def _folders(writer: Writer, edits: Sequence[FileEdit]) -> tuple[str, ...]:
    missing: dict[str, None] = {}
    for edit in edits:
        if edit.old is None or edit.destination:
            missing |= dict.fromkeys(writer.missing_folders(edit.destination or edit.path))
    return tuple(missing)


def _sync(session: Session, writer: Writer, prepared: ChangePrepared) -> None:
    paths = [*(step.path for step in steps_of(prepared)), *prepared.folders]
    if len(session.log.leftover) > MOST_UNSYNCED:
        paths += [f"{folder}/x" for folder in session.log.leftover.unsynced]
    writer.sync(paths)
    session.log.leftover.synced({str(PurePosixPath(path).parent) for path in paths})


def _tidy(session: Session, writer: Writer, prepared: ChangePrepared) -> None:
    """Remove what was displaced, unless somebody has written to it: then it is kept, and told."""
    kept: list[Event] = []
    written = try_write(trace_of(writer, session.log), prepared, fresh=True)
    if written and prepared.trace:
        untraced = prepared.model_copy(update={"trace": None})
        session.log.leftover.traced[prepared.change_id] = pack_event(untraced)
    with suppress(OSError):  # what is left over is looked at again at the next start
        kept = tidy(writer, prepared)
        folders = {str(PurePosixPath(step.path).parent) for step in steps_of(prepared)}
        if written:
            session.log.leftover.cleared(prepared.change_id, folders)
    if kept:
        session.append(*kept)
