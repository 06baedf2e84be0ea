"""Apply a change set through an editor that has the files open, so that unsaved text is kept.

The editor writes text files; deletions and moves are made on disk, first, as they can be undone for sure.
An editor offers no exchange and no transaction. So each file is compared with its base right before it is
written, and read again afterwards; the set is recorded as it came out, or taken back as far as the editor
lets us. After a crash `crash_recovery` decides by what is on disk, and says what it cannot know.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

import anyio
from msgspec.structs import replace

from handrail.changes.apply import prepare, sync, tidy
from handrail.changes.change_set import ChangeSet, FileEdit, sha256
from handrail.changes.crash_recovery import (
    file_steps,
    finish_unfinished,
    remove_leftovers,
    revert_change,
)
from handrail.changes.diff import diff
from handrail.changes.trace.line_blocks import changed_ranges
from handrail.changes.trace.trace_file import open_trace
from handrail.changes.trace.write import with_trace_mark
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import pack_event
from handrail.protocol.values import FileChange
from handrail.sessions.session import Session
from handrail.storage.locks import HeldLock
from handrail.workspace.editor import as_given, as_saved, current_text, is_same
from handrail.workspace.files import NotText, Workspace, decode
from handrail.workspace.writer import Writer, stale_file


class Landed(NamedTuple):
    """What a file holds after the editor wrote it."""

    edit: FileEdit
    data: bytes


def refuse_unsaved(workspace: Workspace, edits: tuple[FileEdit, ...]) -> None:
    """Raise PathProblem for a change of unsaved text that cannot be made in the editor."""
    for edit in edits:
        for path in filter(None, (edit.path, edit.destination)):
            if path in workspace.unsaved and not _goes_through(workspace, edit):
                what = "deleted or moved" if edit.op in ("delete", "move") else "changed"
                raise PathProblem(
                    f"{path} has unsaved text in the editor, so it cannot be {what} from here. "
                    "Ask the user to save it, then read it again.",
                    "stale_file",
                    path,
                )


def _goes_through(workspace: Workspace, edit: FileEdit) -> bool:
    """Whether the editor writes this file: only it can change text that is not saved."""
    if workspace.editor is None or not workspace.editor.writes or edit.op not in ("create", "update"):
        return False
    place = workspace.resolve(edit.path)
    if not place.inside or place.path != edit.path or edit.new is None or edit.old_unread:
        return False
    try:
        decode(edit.new)
        decode(edit.old or b"")
    except NotText:
        return False
    return True


async def apply_in_editor(
    held: ExitStack,
    session: Session,
    workspace: Workspace,
    change_set: ChangeSet,
    lock: HeldLock,
    *,
    emptied: Sequence[str],
) -> ChangeApplied:
    """Apply; the caller commits the event before `held` closes. Raises PathProblem where it was not done."""
    writer = Writer(workspace.root)
    finish_unfinished(session, writer, lock)
    through = await _checked(session, workspace, writer, change_set)
    prepared = prepare(session, writer, lock, change_set, tuple(emptied), in_editor=through)
    landed: list[Landed] = []
    with anyio.CancelScope(shield=True):  # what was begun is recorded as it came out
        try:
            for step in file_steps(prepared):
                if not step.editor:
                    writer.forward(step)
            sync(session, writer, prepared)
            for edit in through.values():
                await _write(session, workspace, edit, landed)
        except (OSError, PathProblem) as problem:
            why = await _take_back(session, workspace, writer, prepared, landed)
            session.append(ChangeAbandoned(change_id=prepared.change_id, why=f"{problem} {why}"))
            lock.clear()
            raise
    if any(each.data != each.edit.new for each in landed):
        prepared = _record_as_landed(session, writer, lock, prepared, landed)

    def finish() -> None:
        if prepared.change_id not in session.state.files.prepared:
            tidy(session, writer, prepared)

    held.callback(finish)
    return ChangeApplied(change_id=prepared.change_id)


async def _checked(
    session: Session, workspace: Workspace, writer: Writer, change_set: ChangeSet
) -> dict[str, FileEdit]:
    """The edits that go through the editor, by path; raises PathProblem where a file is not the base."""
    through = {}
    for edit in change_set.edits:
        for path in filter(None, (edit.path, edit.destination)):
            place = workspace.resolve(path)
            if place.inside:
                await current_text(workspace, session.id, place)
        same_mode = edit.mode is None or edit.mode == writer.look(edit.path).mode
        if _goes_through(workspace, edit) and (same_mode or edit.path in workspace.unsaved):
            through[edit.path] = edit
            if (workspace.sha256(edit.path) or "") != edit.old_sha256:
                raise stale_file(edit.path)
    refuse_unsaved(workspace, tuple(edit for edit in change_set.edits if edit.path not in through))
    return through


async def _write(session: Session, workspace: Workspace, edit: FileEdit, landed: list[Landed]) -> None:
    """Let the editor write one file, and note what came of it, even where that is wrong."""
    editor, place = workspace.editor, workspace.resolve(edit.path)
    if editor is None or edit.new is None:
        raise AssertionError("a file without a text was to be written by an editor")
    before = await current_text(workspace, session.id, place)
    if (workspace.sha256(place) or "") != edit.old_sha256:
        raise stale_file(edit.path)
    try:
        await editor.write(session.id, edit.path, as_given(edit.new, before))
    finally:  # it may have written without saying so
        after = await editor.read(session.id, edit.path)
        data = as_saved(after, edit.new, edit.path) if after is not None else None
        if data is not None and is_same(data, edit.new):
            data = edit.new
        if data is not None and sha256(data) != edit.old_sha256:
            landed.append(Landed(edit, data))
        await current_text(workspace, session.id, place)
    if data is None or sha256(data) == edit.old_sha256:
        message = f"The editor said that it wrote {edit.path}, but it has not. Try again, or ask the user."
        raise PathProblem(message, "protected_path", edit.path)
    saved = workspace.saved(place) if place.path not in workspace.unsaved else data
    landed[-1] = Landed(edit, saved if is_same(saved, data) else data)


async def _take_back(
    session: Session,
    workspace: Workspace,
    writer: Writer,
    prepared: ChangePrepared,
    landed: list[Landed],
) -> str:
    """Undo what was done of a set; returns a message for the user."""
    editor, stays = workspace.editor, list[str]()
    for edit, data in reversed(landed):
        place = workspace.resolve(edit.path)
        try:
            now = await current_text(workspace, session.id, place)
            if editor and edit.old is not None and now is not None and is_same(as_saved(now, data), data):
                await editor.write(session.id, edit.path, as_given(edit.old, now))
                await current_text(workspace, session.id, place)
        except PathProblem:
            pass  # what is left is found below
        if edit.path in workspace.unsaved and workspace.sha256(place) != edit.old_sha256:
            stays.append(edit.path)
    why = revert_change(writer, prepared, session.log)
    return f"{why} The editor still has the change of {', '.join(stays)}." if stays else why


def _record_as_landed(
    session: Session, writer: Writer, lock: HeldLock, prepared: ChangePrepared, landed: list[Landed]
) -> ChangePrepared:
    """Record what the editor made of the texts, in place of what it was asked for: an undo starts from it."""
    texts = {each.edit.path: each for each in landed}
    instead = replace(
        prepared,
        change_id=new_id("c"),
        files=tuple(_as_landed(file, texts[file.path]) if file.editor else file for file in prepared.files),
        trace=None,
    )
    instead = with_trace_mark(session, open_trace(writer, session.log), instead)
    remove_leftovers(writer, prepared)
    lock.note({"change": pack_event(instead)})
    why = "The editor changed the text as it wrote it. The next change set has what came of it."
    abandoned = ChangeAbandoned(change_id=prepared.change_id, why=why)
    session.append(abandoned, instead, blobs=[each.data for each in landed])
    return instead


def _as_landed(file: FileChange, landed: Landed) -> FileChange:
    old, new = landed.edit.old, landed.data
    shown = diff(file.path, None if old is None else decode(old).text, decode(new).text)
    return replace(
        file,
        new_sha256=sha256(new),
        added=shown.added,
        removed=shown.removed,
        size=len(new),
        ranges=changed_ranges(old, new),
    )
