"""Recover after a crash: settle change sets that were begun, by file hashes alone.

All files new: applied. Somebody else's content in one: it stays, the others are reverted, conflict. Otherwise
finish the set if every new content is ready, else revert it.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from typing import NamedTuple

from handrail.changes.trace.trace_file import open_trace
from handrail.changes.trace.write import try_write_trace
from handrail.protocol.errors import PathProblem, StorageDamaged, StorageProblem
from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, CopyKept, Event
from handrail.protocol.upcast import unpack_event
from handrail.protocol.values import FolderMode
from handrail.sessions.session import Session
from handrail.storage.change_journal import Outcome
from handrail.storage.event_log import Log
from handrail.storage.locks import HeldLock, is_unlocked, workspace_lock
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.file_step import FileStep, is_special
from handrail.workspace.files import Workspace
from handrail.workspace.paths import printable, text_path
from handrail.workspace.writer import Writer, exchange_offered

__all__ = ["exchange_offered"]

COPIES_FOLDER = "copies"
"""Beside the log: what commands may change is copied there, in mode `sandbox`."""
NOT_MADE = "The change was not made: the files are as they were before it."
EDITOR_UNKNOWN = (
    "An editor was to write {}: whether it has the change as unsaved text is not known. Look there."
)


def file_steps(prepared: ChangePrepared) -> list[FileStep]:
    """One step per path; a move creates one file and deletes the other."""
    steps = []
    for number, file in enumerate(prepared.files):
        old, new, mark = file.old_sha256, file.new_sha256, f"{prepared.change_id}-{number}"
        path = os.fsdecode(bytes.fromhex(file.raw)) if file.raw else file.path
        if file.op == "move":
            steps.append(FileStep(file.destination, "", new, None, file.new_mode, f"{mark}n", like=path))
            steps.append(FileStep(path, old, "", file.old_mode, None, f"{mark}o"))
        else:
            special = is_special(file.old_mode) or is_special(file.new_mode)
            like = path if old and new and not special else ""
            modes = (file.old_mode, file.new_mode)
            steps.append(FileStep(path, old, new, *modes, mark, like=like, editor=file.editor))
    return steps


OWNER = 0o700


def open_folders(writer: Writer, modes: Iterable[FolderMode]) -> None:
    """Let the owner write the folders that a change set is about, until it is over."""
    for each in modes:
        path = text_path(each.path)
        found = writer.folder_mode(path)
        if each.old is not None and found == each.old and found & OWNER != OWNER:
            writer.set_mode(path, found | OWNER)


def set_folder_modes(writer: Writer, modes: Iterable[FolderMode]) -> None:
    """Give the folders the permissions that they have after the change set; others' choices stay."""
    for each in reversed(tuple(modes)):
        path = text_path(each.path)
        found = writer.folder_mode(path)
        if each.new is None or found is None or found == each.new:
            continue
        if each.old is None or found in (each.old, each.old | OWNER, each.new | OWNER):
            writer.set_mode(path, each.new)


def _reset_folder_modes(writer: Writer, prepared: ChangePrepared) -> None:
    set_folder_modes(writer, [FolderMode(each.path, each.new, each.old) for each in prepared.folder_modes])


class NotKept(StorageDamaged):
    """A file's earlier content is no longer stored, as after a repair of the log."""


class Settlement(NamedTuple):
    outcome: Outcome
    why: str = ""

    def event(self, change_id: str) -> Event:
        if self.outcome == "applied":
            return ChangeApplied(change_id=change_id)
        return ChangeAbandoned(change_id=change_id, why=self.why)


def needs_recovery(session: Session) -> bool:
    """Whether anything that any session began in this workspace may be unfinished."""
    log = session.log
    return not is_unlocked(log.folder) or bool(
        _without_journal(session) or log.begun() or log.leftovers() or _unreported_outcomes(session)
    )


def recover(
    session: Session, workspace: Workspace, disk: Disk = DISK, *, lock: HeldLock | None = None
) -> list[Event]:
    """Finish what any session began in this workspace; returns the events that this session must commit.

    A folder that cannot be written leaves it unfinished: the session opens, and changes wait. Without
    `lock`, the workspace lock is taken here, and waiting for it blocks.
    """
    log = session.log
    if elsewhere := log.database.unsettled_elsewhere(session.stream):
        places = ", ".join(dict.fromkeys(place for _, place in elsewhere))
        raise StorageProblem(
            f"Session {session.id} was interrupted while it changed files in {places}. Open it there once: "
            "that finishes the change or takes it back. "
            f"Or go on here in a copy: `handrail fork {session.id}`."
        )
    if not needs_recovery(session):
        return []
    writer = Writer(workspace.root, disk)
    taken = nullcontext(lock) if lock else workspace_lock(log.folder, f"session {session.id}")
    with taken as held:
        unknown = _without_journal(session)
        events: list[Event] = []
        try:
            _tidy_note(writer, held, log)
            _settle_all(writer, log)
            events += _sweep(writer, log)
            for each in unknown:
                settled = settle_change(writer, each, log)
                events.append(settled.event(each.change_id))
                if settled.outcome == "applied":
                    try_write_trace(open_trace(writer, log), each)
        except (OSError, PathProblem):
            pass
        return [*events, *_unreported_outcomes(session)]


def finish_unfinished(session: Session, writer: Writer, lock: HeldLock) -> None:
    """The same before a new change set is begun; raises where it cannot be done."""
    _tidy_note(writer, lock, session.log)
    _settle_all(writer, session.log)
    if events := _unreported_outcomes(session):
        session.append(*events)


def settle_change(writer: Writer, prepared: ChangePrepared, log: Log) -> Settlement:
    steps = file_steps(prepared)
    for step in steps:
        writer.straighten(step)
        writer.return_displaced(step)
    states = _states(writer, steps)
    ready = all(writer.is_ready(step) for step, state in zip(steps, states, strict=True) if state == "old")
    if "third" not in states and ready:
        try:
            for step, state in zip(steps, states, strict=True):
                if state == "old":
                    writer.forward(step)
        except PathProblem:
            pass  # somebody else was quicker
        else:
            writer.sync([*(step.path for step in steps), *map(text_path, prepared.folders)])
            remove_leftovers(writer, prepared)
            return Settlement("applied")
    why = revert_change(writer, prepared, log)
    asked = [printable(step.path) for step in steps if step.editor]
    return Settlement("abandoned", f"{why} {EDITOR_UNKNOWN.format(', '.join(asked))}" if asked else why)


def revert_change(writer: Writer, prepared: ChangePrepared, log: Log) -> str:
    """Undo a set that could not be applied completely; returns a message for the user."""
    steps, content = file_steps(prepared), _content_reader(log)
    for step in reversed(steps):
        writer.straighten(step)
        if step.state(writer.look(step.path)) == "new":
            with suppress(NotKept):
                writer.back(step, content)
    states = _states(writer, steps)
    for step in steps:
        writer.tidy(step)
    kept = [copy for step in steps if (copy := writer.conflict_copy(step))]
    writer.remove_folders(map(text_path, reversed(prepared.folders)))
    _reset_folder_modes(writer, prepared)
    writer.sync([*(step.path for step in steps), *map(text_path, prepared.folders)])
    pairs = list(zip(steps, states, strict=True))
    # A file with unsaved text in an editor is neither old nor new on disk.
    theirs = [printable(step.path) for step, state in pairs if state == "third" and not step.editor]
    if not theirs and "new" not in states and not kept:
        return NOT_MADE
    lost = [printable(step.path) for step, state in pairs if state == "new"]
    parts = []
    if theirs or kept:
        changed = f" ({', '.join(theirs)})" if theirs else ""
        parts.append(f"Somebody else changed a file meanwhile{changed}. It was left as it is.")
    if lost:
        parts.append(f"The earlier content of {', '.join(lost)} is no longer stored: it stays changed.")
    parts.append("The other files are as they were before.")
    if kept:
        parts.append(f"The replaced content is in {', '.join(kept)}.")
    return f"Conflict: {' '.join(parts)}"


def _states(writer: Writer, steps: list[FileStep]) -> list[str]:
    return [step.state(writer.look(step.path)) for step in steps]


def _settle_all(writer: Writer, log: Log) -> None:
    for row in log.begun():
        prepared = _prepared(row.data)
        outcome = row.outcome
        if outcome:
            remove_leftovers(writer, prepared)  # a power cut may have brought back what was removed
        else:
            outcome, why = settle_change(writer, prepared, log)
            log.settle(row.change, outcome, why)
        if outcome == "applied":
            try_write_trace(open_trace(writer, log), prepared)


def _unreported_outcomes(session: Session) -> list[Event]:
    mine = [row for row in session.log.begun_anywhere() if row.stream == session.stream and row.outcome]
    return [Settlement(row.outcome, row.why).event(row.change) for row in mine]


def _without_journal(session: Session) -> list[ChangePrepared]:
    """Change sets that were begun according to the log, but are not in the journal, as after a repair."""
    known = {row.change for row in session.log.begun_anywhere()}
    return [each for each in session.state.files.prepared.values() if each.change_id not in known]


def _sweep(writer: Writer, log: Log) -> list[Event]:
    """Remove what applied sets replaced."""
    kept: list[Event] = []
    for change, data in log.leftovers():
        try:
            prepared = _prepared(data)
        except StorageProblem:
            continue  # the files are right; the version that wrote it can still tidy up
        kept += remove_leftovers(writer, prepared)
        writer.sync(step.path for step in file_steps(prepared))
        if try_write_trace(open_trace(writer, log), prepared):
            log.leftover.gone.append(change)
    return kept


def remove_leftovers(writer: Writer, prepared: ChangePrepared) -> list[Event]:
    """Remove what an applied set replaced or emptied; what somebody else wrote there is kept and reported."""
    copies = [(step.path, writer.tidy(step)) for step in file_steps(prepared)]
    writer.remove_folders(map(text_path, prepared.emptied))
    if prepared.by != "command":  # a command has already set them
        set_folder_modes(writer, prepared.folder_modes)
    return [
        CopyKept(change_id=prepared.change_id, path=printable(path), copy_path=printable(copy))
        for path, copy in copies
        if copy
    ]


def discard(writer: Writer, prepared: ChangePrepared) -> None:
    """Remove the temporary files of a set that never came into the log."""
    for step in file_steps(prepared):
        writer.discard(step)
    writer.remove_folders(map(text_path, reversed(prepared.folders)))
    _reset_folder_modes(writer, prepared)


def _tidy_note(writer: Writer, lock: HeldLock, log: Log) -> None:
    """Remove what a process left that died before its change set was in the log."""
    try:
        prepared = _prepared(lock.left.get("change", ""))
    except StorageProblem:
        return
    known = {row.change for row in log.begun()} | {change for change, _ in log.leftovers()}
    if prepared.change_id not in known:
        for step in file_steps(prepared):  # the log is an older backup: the files were already changed
            writer.straighten(step)
            writer.put_back(step)
        discard(writer, prepared)
        writer.sync([*(step.path for step in file_steps(prepared)), *map(text_path, prepared.folders)])


def _prepared(data: str) -> ChangePrepared:
    try:
        event = unpack_event(data)
    except ValueError as error:
        raise StorageProblem(
            "An unfinished change set was written by another version of Handrail; this one cannot read it."
            " Open the workspace once with that version: it finishes or reverts the change."
        ) from error
    if not isinstance(event, ChangePrepared):
        raise StorageDamaged("The journal of change sets holds something that is not a change set.")
    return event


def _content_reader(log: Log) -> Callable[[str], bytes]:
    def content(sha256: str) -> bytes:
        data = log.blob(sha256)
        if data is None:
            raise NotKept(f"The content {sha256[:12]}, which an unfinished change needs, is not stored.")
        return data

    return content
