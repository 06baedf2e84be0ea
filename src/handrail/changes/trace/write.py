"""Write a change set to the trace: mark it before it begins, add its lines once applied.

The mark is committed with the change set: the log has the hash of each line before the file has the line.
"""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from handrail.changes.trace.trace_file import TraceFile, user_errors, verified_lines, with_line_hashes
from handrail.protocol.errors import PathProblem, StorageProblem
from handrail.protocol.events import ChangeApplied, ChangePrepared
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import unpack_event
from handrail.protocol.values import TraceMark
from handrail.sessions.session import Session
from handrail.storage.event_log import Log
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import INTENTS_FILE, may_exist


def is_traced(root: Path, change: ChangePrepared) -> bool:
    """Whether a change set is traced: the workspace has intents, or it belongs to one."""
    has_files = any(not file.ignored for file in change.files)
    return has_files and (bool(change.intent_id) or may_exist(root / INTENTS_FILE))


def with_trace_mark(session: Session, trace: TraceFile, change: ChangePrepared) -> ChangePrepared:
    """The change set with its place in the trace, where it is traced.

    Raises StorageFull or PathProblem where earlier changes cannot be traced: then nothing more is changed.
    """
    if not is_traced(trace.root, change):
        return change
    with user_errors():
        return _with_mark(session, change, continues=_continues_chain(session, trace))


def _continues_chain(session: Session, trace: TraceFile) -> bool:
    """Whether the file has this session's last line; if not, as on another branch, a new chain begins."""
    chain = session.state.trace
    if not chain.writer:
        return False
    if trace.tail(chain.writer).sha256 == chain.head:
        return True
    write_missing_lines(session.log, trace)
    return trace.tail(chain.writer).sha256 == chain.head


def _with_mark(session: Session, change: ChangePrepared, *, continues: bool) -> ChangePrepared:
    chain = session.state.trace
    mark = TraceMark(
        writer=chain.writer if continues else new_id("w"),
        number=chain.count + 1 if continues else 1,
        before=chain.head if continues else "",
        lines=(),
        at=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        session_id=session.id,
    )
    return with_line_hashes(change, mark)


def write_trace(trace: TraceFile, change: ChangePrepared, *, fresh: bool = False) -> None:
    """Write the lines of an applied change set that the file lacks; raises OSError, StorageProblem."""
    if mark := change.trace:
        trace.add(mark.writer, mark.number, verified_lines(change), fresh=fresh and mark.number == 1)


def try_write_trace(trace: TraceFile, change: ChangePrepared, *, fresh: bool = False) -> bool:
    """The same; False where it failed and the next change, or recovery, has to do it."""
    try:
        write_trace(trace, change, fresh=fresh)
    except (OSError, StorageProblem, PathProblem):
        return False
    return True


def write_missing_lines(log: Log, trace: TraceFile) -> None:
    """Write lines of applied changes that the file may lack, as after a crash or on a full disk."""
    settled = [row.data for row in log.begun() if row.outcome == "applied"]
    left = [data for change, data in log.leftovers() if change not in log.leftover.traced]
    for data in (*left, *settled):
        with suppress(ValueError):  # of another version, which can still finish it
            change = unpack_event(data)
            if isinstance(change, ChangePrepared):
                write_trace(trace, change)


def record_applied(
    session: Session, workspace: Workspace, change: ChangePrepared, blobs: tuple[bytes, ...]
) -> None:
    """Commit a change set that is already on disk, as after a command, and trace it."""
    trace = TraceFile(workspace.root, session.log.folder)
    if is_traced(trace.root, change):
        try:
            continues = _continues_chain(session, trace)
        except (OSError, PathProblem, StorageProblem):
            # Missing lines are written first, once that is possible.
            continues = bool(session.state.trace.writer)
        change = _with_mark(session, change, continues=continues)
    session.append(change, ChangeApplied(change_id=change.change_id), blobs=blobs)
    if change.trace and try_write_trace(trace, change):
        session.log.leftover.gone.append(change.change_id)
