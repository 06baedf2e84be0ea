"""How a change set comes into the trace: marked before it is begun, written once it is applied.

The mark is committed with the change set, so that the log has each chain's head before the file has the line.
"""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from handrail.changes.trace.file import TraceFile, typed
from handrail.changes.trace.line import checked_lines, marked
from handrail.protocol.errors import PathProblem, StorageProblem
from handrail.protocol.events import ChangeApplied, ChangePrepared
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import unpack_event
from handrail.protocol.values import TraceMark
from handrail.sessions.handle import Session
from handrail.storage.log import Log
from handrail.workspace.files import Workspace
from handrail.workspace.intents.intent_file import FILE, is_there


def is_traced(root: Path, change: ChangePrepared) -> bool:
    """Whether a change set has lines: where the workspace has intents, or it belongs to one."""
    return bool(change.files) and (bool(change.intent_id) or is_there(root / FILE))


def with_mark(session: Session, trace: TraceFile, change: ChangePrepared) -> ChangePrepared:
    """The change set with its place in the trace, where the workspace has one.

    Raises StorageFull or PathProblem where what was applied before cannot be traced: no more is changed then.
    """
    if not is_traced(trace.root, change):
        return change
    with typed():
        return _marked(session, change, goes_on=_goes_on(session, trace))


def _goes_on(session: Session, trace: TraceFile) -> bool:
    """Whether the file holds what this session wrote last; on another branch, say, a new chain begins."""
    chain = session.state.trace
    if not chain.writer:
        return False
    if trace.tail(chain.writer).sha256 == chain.head:
        return True
    complete_all(session.log, trace)
    return trace.tail(chain.writer).sha256 == chain.head


def _marked(session: Session, change: ChangePrepared, *, goes_on: bool) -> ChangePrepared:
    chain = session.state.trace
    mark = TraceMark(
        writer=chain.writer if goes_on else new_id("w"),
        number=chain.count + 1 if goes_on else 1,
        before=chain.head if goes_on else "",
        lines=(),
        at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        session_id=session.id,
    )
    return marked(change, mark)


def write(trace: TraceFile, change: ChangePrepared, *, fresh: bool = False) -> None:
    """The lines of an applied change set, unless the file has them; raises OSError, StorageProblem."""
    if mark := change.trace:
        trace.add(mark.writer, mark.number, checked_lines(change), fresh=fresh and mark.number == 1)


def try_write(trace: TraceFile, change: ChangePrepared, *, fresh: bool = False) -> bool:
    """The same; False where it is left for the next change, or for recovery."""
    try:
        write(trace, change, fresh=fresh)
    except (OSError, StorageProblem, PathProblem):
        return False
    return True


def complete_all(log: Log, trace: TraceFile) -> None:
    """What was applied and may not have come into the file, as after a crash or on a full disk."""
    settled = [row.data for row in log.begun() if row.outcome == "applied"]
    left = [data for change, data in log.leftovers() if change not in log.leftover.traced]
    for data in (*left, *settled):
        with suppress(ValueError):  # of another version: who wrote it can still finish it
            change = unpack_event(data)
            if isinstance(change, ChangePrepared):
                write(trace, change)


def record_applied(
    session: Session, workspace: Workspace, change: ChangePrepared, blobs: tuple[bytes, ...]
) -> None:
    """Commit a change set that others have made already, as commands do, and trace it."""
    trace = TraceFile(workspace.root, session.log.folder)
    if is_traced(trace.root, change):
        try:
            goes_on = _goes_on(session, trace)
        except (OSError, PathProblem, StorageProblem):
            goes_on = bool(
                session.state.trace.writer
            )  # what is missing is written first, once that is possible
        change = _marked(session, change, goes_on=goes_on)
    session.append(change, ChangeApplied(change_id=change.change_id), blobs=blobs)
    if change.trace and try_write(trace, change):
        session.log.leftover.gone.append(change.change_id)
