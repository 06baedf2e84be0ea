"""Apply a change set all or none; after a crash each file is old or new.

1. Take the lock and finish unfinished sets. 2. Check that every file is the base. 3. Write the new contents
beside the files. 4. Commit both contents and the prepared set to the log. 5. Exchange the names. 6. Sync the
folders. 7. Commit the outcome, which the caller does together with its own events. 8. Check the replaced
files once more before removing them.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import PurePosixPath

from msgspec.structs import asdict, replace

from handrail.changes.change_set import ChangeSet, FileEdit
from handrail.changes.crash_recovery import (
    discard,
    file_steps,
    finish_unfinished,
    open_folders,
    remove_leftovers,
    revert_change,
)
from handrail.changes.trace.line_blocks import changed_ranges
from handrail.changes.trace.trace_file import open_trace
from handrail.changes.trace.write import try_write_trace, with_trace_mark
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, Event
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import pack_event
from handrail.protocol.values import FileChange
from handrail.sessions.session import Session
from handrail.storage.locks import HeldLock, wait_for_workspace, workspace_lock
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.file_step import FileState
from handrail.workspace.files import Workspace
from handrail.workspace.paths import path_text, printable, text_path
from handrail.workspace.writer import Writer, stale_file

MAX_UNSYNCED = 100
"""Applied sets whose removed leftovers may wait to be synced."""


def apply(
    session: Session,
    workspace: Workspace,
    change_set: ChangeSet,
    *also: Event,
    emptied: Sequence[str] = (),
    disk: Disk = DISK,
) -> ChangeApplied:
    """Apply and commit, with other events in the same commit; if it raises PathProblem, nothing changed."""
    with applying(session, workspace, change_set, emptied=emptied, disk=disk) as applied:
        session.append(applied, *also)
    return applied


async def apply_when_free(
    held: ExitStack,
    session: Session,
    workspace: Workspace,
    change_set: ChangeSet,
    *,
    emptied: Sequence[str] = (),
    check: Callable[[], object] | None = None,
) -> ChangeApplied:
    """Apply once no other process changes files here; the caller commits the event before `held` closes.

    `check` is called after the wait, before anything is written; it may raise.
    """
    with ExitStack() as both:
        lock = await wait_for_workspace(both, session.log.folder, f"session {session.id}")
        if check:
            check()
        if workspace.editor and workspace.editor.has(session.id):
            from handrail.changes.editor_writes import apply_in_editor

            applied = await apply_in_editor(both, session, workspace, change_set, lock, emptied=emptied)
        else:
            applied = both.enter_context(applying(session, workspace, change_set, emptied=emptied, lock=lock))
        held.push(both.pop_all())
    return applied


@contextmanager
def applying(
    session: Session,
    workspace: Workspace,
    change_set: ChangeSet,
    *,
    emptied: Sequence[str] = (),
    disk: Disk = DISK,
    lock: HeldLock | None = None,
) -> Iterator[ChangeApplied]:
    """Apply; the caller commits the event in the block. Those of the `emptied` folders that are empty go.

    Without `lock`, the workspace lock is taken here, and waiting for it blocks.
    """
    writer = Writer(workspace.root, disk)
    taken = nullcontext(lock) if lock else workspace_lock(session.log.folder, f"session {session.id}")
    with taken as held:
        finish_unfinished(session, writer, held)
        prepared = prepare(session, writer, held, change_set, tuple(emptied))
        steps = file_steps(prepared)
        try:
            for step in steps:
                writer.forward(step)
            sync(session, writer, prepared)
        except (OSError, PathProblem):
            why = revert_change(writer, prepared, session.log)
            session.append(ChangeAbandoned(change_id=prepared.change_id, why=why))
            held.clear()
            raise
        yield ChangeApplied(change_id=prepared.change_id)
        if prepared.change_id not in session.state.files.prepared:
            tidy(session, writer, prepared)


def prepare(
    session: Session,
    writer: Writer,
    lock: HeldLock,
    change_set: ChangeSet,
    emptied: tuple[str, ...],
    *,
    in_editor: Collection[str] = (),
) -> ChangePrepared:
    """Everything up to the commit of the prepared set; where that fails, nothing is left behind.

    `in_editor`: files that an editor writes; whether it has their base was checked before.
    """
    origin, edits = change_set.origin, change_set.edits
    counts = Counter(path for edit in edits for path in (edit.path, edit.destination) if path)
    for path, times in counts.items():
        if times > 1:
            message = f"{path} is changed {times} times in one set. Combine them into one change."
            raise PathProblem(message, "invalid_arguments", path)
    agreed = change_set.hard_links_agreed
    bases = [_base(writer, edit, agreed=agreed, editor=edit.path in in_editor) for edit in edits]
    missing: dict[str, None] = {}
    wanted = [text_path(each.path) for each in change_set.folder_modes if each.new is not None]
    missing |= dict.fromkeys(path for path in wanted if writer.folder_mode(path) is None)
    for edit in edits:
        if edit.old is None or edit.destination:
            missing |= dict.fromkeys(writer.missing_folders(edit.destination or edit.path))
    fields = asdict(origin)
    fields["intent_id"] = origin.intent_id or session.state.intent
    fields["request_id"] = origin.request_id or (
        session.state.turn.last_request if session.state.turn else ""
    )
    prepared = ChangePrepared(
        change_id=new_id("c"),
        files=tuple(
            _change(edit, base, editor=edit.path in in_editor)
            for edit, base in zip(edits, bases, strict=True)
        ),
        folders=tuple(map(path_text, sorted(missing))),
        emptied=tuple(map(path_text, emptied)),
        folder_modes=change_set.folder_modes,
        **fields,
    )
    prepared = with_trace_mark(session, open_trace(writer, session.log), prepared)
    lock.note({"change": pack_event(prepared)})
    try:
        open_folders(writer, prepared.folder_modes)
        writer.make_folders(map(text_path, prepared.folders))
        prepared = _put(writer, prepared, edits)
        contents = {edit.old_sha256: edit.old for edit in edits}
        contents |= {edit.new_sha256: edit.new for edit in edits}
        session.append(prepared, blobs=[data for data in contents.values() if data is not None])
    except BaseException:
        discard(writer, prepared)
        with suppress(OSError):  # then the note stays, and the next holder tidies up
            writer.sync([*(step.path for step in file_steps(prepared)), *map(text_path, prepared.folders)])
            lock.clear()
        raise
    return prepared


def _put(writer: Writer, prepared: ChangePrepared, edits: Sequence[FileEdit]) -> ChangePrepared:
    """Write the new contents beside the files; returns the event with the modes that they have."""
    contents = {edit.destination or edit.path: edit.new for edit in edits}
    modes = {}
    for step in file_steps(prepared):
        if step.new and not step.editor:
            modes[step.path] = writer.put(step, contents[step.path] or b"", step.new_mode)
    files = [
        file if file.editor else replace(file, new_mode=modes.get(file.destination or file.path))
        for file in prepared.files
    ]
    return replace(prepared, files=tuple(files))


def _base(writer: Writer, edit: FileEdit, *, agreed: bool, editor: bool) -> FileState:
    """The file as it is, if it is what the edit starts from; an editor's text need not be on disk."""
    found = writer.look(edit.path)
    if found.sha256 != edit.old_sha256 and not editor:
        raise stale_file(edit.path)
    if edit.destination and writer.look(edit.destination).sha256:
        raise PathProblem(f"{edit.destination} already exists.", "file_exists", edit.destination)
    if found.links > 1 and not agreed:
        why = (
            f"{edit.path} has {found.links} names (hard links), and only this one would get the new content."
        )
        raise PathProblem(f"{why} Ask the user whether to do that.", "hard_link", edit.path)
    return found


def _change(edit: FileEdit, base: FileState, *, editor: bool) -> FileChange:
    mode = edit.mode if edit.mode is not None else base.mode
    return FileChange(
        path=printable(edit.path),
        raw=os.fsencode(edit.path).hex() if printable(edit.path) != edit.path else "",
        op=edit.op,
        destination=edit.destination,
        old_sha256=edit.old_sha256,
        new_sha256=edit.new_sha256,
        old_mode=base.mode,
        new_mode=mode if edit.new is not None else None,
        added=edit.diff.added,
        removed=edit.diff.removed,
        matched=edit.matched,
        ignored=edit.ignored,
        size=len(edit.new) if edit.new is not None else None,
        ranges=changed_ranges(edit.old, edit.new),
        editor=editor,
    )


def sync(session: Session, writer: Writer, prepared: ChangePrepared) -> None:
    paths = [*(step.path for step in file_steps(prepared)), *map(text_path, prepared.folders)]
    if len(session.log.leftover) > MAX_UNSYNCED:
        paths += [f"{folder}/x" for folder in session.log.leftover.unsynced]
    writer.sync(paths)
    session.log.leftover.synced({str(PurePosixPath(path).parent) for path in paths})


def tidy(session: Session, writer: Writer, prepared: ChangePrepared) -> None:
    """Remove what was replaced, unless somebody has written to it: then it is kept and reported."""
    kept: list[Event] = []
    written = try_write_trace(open_trace(writer, session.log), prepared, fresh=True)
    if written and prepared.trace:
        untraced = replace(prepared, trace=None)
        session.log.leftover.traced[prepared.change_id] = pack_event(untraced)
    with suppress(OSError):  # the next start removes what is left
        kept = remove_leftovers(writer, prepared)
        folders = {str(PurePosixPath(step.path).parent) for step in file_steps(prepared)}
        if written:
            session.log.leftover.cleared(prepared.change_id, folders)
    if kept:
        session.append(*kept)
