"""Recovery: what became of change sets that were begun, told by hashes alone, as often as one likes.

All new: applied. Somebody else's content: it stays, the others go back, conflict. Otherwise forward where
every new content is ready, else back.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from handrail.changes.journal import steps_of
from handrail.changes.trace.file import trace_of
from handrail.changes.trace.writing import try_write
from handrail.protocol.errors import PathProblem, StorageDamaged, StorageProblem
from handrail.protocol.events import ChangeAbandoned, ChangeApplied, ChangePrepared, CopyKept, Event
from handrail.protocol.upcast import unpack_event
from handrail.sessions.handle import Session
from handrail.storage.journal import Begun, Outcome
from handrail.storage.log import Log
from handrail.storage.workspace_lock import Held, is_clear, workspace_lock
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.files import Workspace
from handrail.workspace.found import Step
from handrail.workspace.writer import Writer, exchange_offered

__all__ = ["discard", "exchange_offered", "finish_unfinished", "recover", "settle", "take_back", "tidy"]

NOT_MADE = "The change was not made: the files are as they were before it."


class NotKept(StorageDamaged):
    """What a file was before cannot be had any more, as after a repair of the log."""


class Settled(NamedTuple):
    """What a change set has come to."""

    outcome: Outcome
    why: str = ""


def recover(session: Session, workspace: Workspace, disk: Disk = DISK) -> list[Event]:
    """Finish what was begun in this workspace, by whichever session; the session's own part, to be committed.

    A folder that cannot be written leaves it unfinished: the session opens, and changes wait.
    """
    log = session.log
    unknown = _without_journal(session)
    if is_clear(log.folder) and not (unknown or log.begun() or log.leftovers()):
        return []
    writer = Writer(workspace.root, disk)
    with workspace_lock(log.folder, f"session {session.id}") as lock:
        events: list[Event] = []
        try:
            _tidy_note(writer, lock, log)
            _settle_all(writer, log)
            events += _sweep(writer, log)
            for each in unknown:
                events.append(_event(each, settled := settle(writer, each, _blobs(log))))
                if settled.outcome == "applied":
                    try_write(trace_of(writer, log), each)
        except (OSError, PathProblem):
            pass
        return [*events, *_told(session)]


def finish_unfinished(session: Session, writer: Writer, lock: Held) -> None:
    """The same before a new change set is begun; raises where it cannot be done."""
    _tidy_note(writer, lock, session.log)
    _settle_all(writer, session.log)
    if told := _told(session):
        session.append(*told)


def settle(writer: Writer, prepared: ChangePrepared, content: Callable[[str], bytes]) -> Settled:
    """Bring the files of a change set to rest, and say what they are."""
    steps = steps_of(prepared)
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
            states = _states(writer, steps)  # somebody else was quicker
        else:
            writer.sync([*(step.path for step in steps), *prepared.folders])
            tidy(writer, prepared)
            return Settled("applied")
    return Settled("abandoned", _go_back(writer, prepared, content))


def take_back(writer: Writer, prepared: ChangePrepared, log: Log) -> str:
    """Undo what was done of a set that could not be done; why, in words for the user."""
    return _go_back(writer, prepared, _blobs(log))


def _go_back(writer: Writer, prepared: ChangePrepared, content: Callable[[str], bytes]) -> str:
    steps = steps_of(prepared)
    for step in reversed(steps):
        writer.straighten(step)
        if step.state(writer.look(step.path)) == "new":
            with suppress(NotKept):
                writer.back(step, content)
    states = _states(writer, steps)
    kept = [copy for step in steps if (copy := writer.tidy(step))]
    writer.remove_folders(reversed(prepared.folders))
    writer.sync([*(step.path for step in steps), *prepared.folders])
    if set(states) <= {"old"} and not kept:
        return NOT_MADE
    theirs = [step.path for step, state in zip(steps, states, strict=True) if state == "third"]
    lost = [step.path for step, state in zip(steps, states, strict=True) if state == "new"]
    parts = ["Conflict:"]
    if theirs or kept:
        changed = f" ({', '.join(theirs)})" if theirs else ""
        parts.append(f"somebody else changed a file meanwhile{changed}. It was left as it is.")
    if lost:
        parts.append(f"what {', '.join(lost)} was before is not kept any more: it is as the change made it.")
    parts.append("The others are as they were before.")
    if kept:
        parts.append(f"What was displaced is in {', '.join(kept)}.")
    return " ".join(parts)


def _states(writer: Writer, steps: list[Step]) -> list[str]:
    return [step.state(writer.look(step.path)) for step in steps]


def _settle_all(writer: Writer, log: Log) -> None:
    for row in log.begun():
        prepared = _prepared(row.data)
        outcome = row.outcome
        if outcome:
            tidy(writer, prepared)  # a power cut may have brought back what was removed
        else:
            outcome, why = settle(writer, prepared, _blobs(log))
            log.settle(row.change, outcome, why)
        if outcome == "applied":
            try_write(trace_of(writer, log), prepared)


def _told(session: Session) -> list[Event]:
    """What the session does not know yet of its own change sets."""
    mine = [row for row in session.log.begun() if row.stream == session.stream and row.outcome]
    return [_outcome_event(row) for row in mine]


def _outcome_event(row: Begun) -> Event:
    if row.outcome == "applied":
        return ChangeApplied(change_id=row.change)
    return ChangeAbandoned(change_id=row.change, why=row.why)


def _event(prepared: ChangePrepared, settled: Settled) -> Event:
    return _outcome_event(Begun(prepared.change_id, "", "", settled.outcome, settled.why))


def _without_journal(session: Session) -> list[ChangePrepared]:
    """Change sets that the log says were begun and the journal has no word of, as after a repair."""
    known = {row.change for row in session.log.begun()}
    return [each for each in session.state.files.prepared.values() if each.change_id not in known]


def _sweep(writer: Writer, log: Log) -> list[Event]:
    """Look once more at what applied sets displaced, and remove it."""
    kept: list[Event] = []
    for change, data in log.leftovers():
        try:
            prepared = _prepared(data)
        except StorageProblem:
            continue  # the files are as they are to be; who wrote it can still tidy up
        kept += tidy(writer, prepared)
        writer.sync(step.path for step in steps_of(prepared))
        if try_write(trace_of(writer, log), prepared):
            log.leftover.gone.append(change)
    return kept


def tidy(writer: Writer, prepared: ChangePrepared) -> list[Event]:
    """Remove what an applied set displaced or emptied; what somebody else wrote there is kept, and told."""
    copies = [(step.path, writer.tidy(step)) for step in steps_of(prepared)]
    writer.remove_folders(prepared.emptied)
    return [
        CopyKept(change_id=prepared.change_id, path=path, copy_path=copy) for path, copy in copies if copy
    ]


def discard(writer: Writer, prepared: ChangePrepared) -> None:
    """Remove what was made for a set whose intention never came into the log."""
    for step in steps_of(prepared):
        writer.discard(step)
    writer.remove_folders(reversed(prepared.folders))


def _tidy_note(writer: Writer, lock: Held, log: Log) -> None:
    """Remove what a process left that died before its intention was in the log."""
    try:
        prepared = _prepared(lock.left.get("change", ""))
    except StorageProblem:
        return
    known = {row.change for row in log.begun()} | {change for change, _ in log.leftovers()}
    if prepared.change_id not in known:
        for step in steps_of(prepared):  # a log of before the crash, from a backup: the files had gone on
            writer.straighten(step)
            writer.put_back(step)
        discard(writer, prepared)
        writer.sync([*(step.path for step in steps_of(prepared)), *prepared.folders])


def _prepared(data: str) -> ChangePrepared:
    try:
        event = unpack_event(data)
    except ValueError as error:
        raise StorageProblem(
            "An unfinished change set was written by another version of Handrail; this one cannot read it."
            " Open the workspace once with that version: it finishes the change, or takes it back."
        ) from error
    if not isinstance(event, ChangePrepared):
        raise StorageDamaged("The journal of change sets holds something that is no change set.")
    return event


def _blobs(log: Log) -> Callable[[str], bytes]:
    def content(sha256: str) -> bytes:
        data = log.blob(sha256)
        if data is None:
            raise NotKept(f"A content that an unfinished change needs is not kept ({sha256[:12]}).")
        return data

    return content
