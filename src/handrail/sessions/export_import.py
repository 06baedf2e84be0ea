"""Fork, export and import: copy a session's events to another session or a file.

An export is JSON Lines: a head (`handrail_export`, the session's id), one line per event exactly as it was
hashed, one line per stored content, and a last line with the counts, which shows if the file was cut off.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec.structs import replace

from handrail.protocol.errors import StorageProblem, UsageProblem
from handrail.protocol.events.base import Recorded
from handrail.protocol.events.changes import ChangePrepared
from handrail.protocol.events.conversation import TurnFinished, UserMessage
from handrail.protocol.events.requests import (
    Answered,
    AnswerReceived,
    RequestContinued,
    RequestFailed,
    RequestStarted,
    SideAnswered,
    SideAsked,
)
from handrail.protocol.events.runs import StageCompleted
from handrail.protocol.events.session import SessionCopied, SessionStarted
from handrail.protocol.events.subagents import SubagentEvent
from handrail.protocol.events.tools import ToolFinished
from handrail.protocol.ids import new_id, session_stream
from handrail.protocol.upcast import VERSION, dump_event, is_storable, load_event
from handrail.protocol.values import to_json
from handrail.sessions.session import Session, event_from_row, label_of
from handrail.sessions.session_state import SessionState
from handrail.sessions.subagent_session import inner_event
from handrail.storage.event_log import Log, NewRow, Row, first_hash, row_hash
from handrail.storage.request_bytes import chain_hashes

FORMAT = 1
PAGE_EVENTS = 500
SESSION_ID = re.compile(r"\w{1,40}", re.ASCII)
LARGEST_BLOB = 64_000_000
POINTERS = {
    "compacted": ("upto",),
    "attempt_started": ("keep",),
    "rewound": ("keep",),
    "user_message": ("accepts", "keep"),
    "turn_started": ("repeats",),
}
"""Fields that name an earlier event."""


def events_of(log: Log, stream: str, after: int = 0) -> Iterator[tuple[Row, Recorded]]:
    """A stream's events with their rows, page by page."""
    while rows := log.read(stream, after=after, limit=PAGE_EVENTS):
        yield from ((row, event_from_row(row)) for row in rows)
        after = rows[-1].seq


def fork(log: Log, session_id: str, turn: int | None) -> str:
    """A new session with the same events up to the end of a turn; None: the last finished turn."""
    kept: list[NewRow] = []
    end = turns = 0
    for row, one in events_of(log, session_stream(session_id)):
        kept.append(NewRow(row.type, row.version, row.data))
        if isinstance(one.event, TurnFinished):
            turns, end = turns + 1, row.seq
            if turns == turn:
                break
    if turn is not None and turns != turn:
        count = f"{turns} finished turn{'s' * (turns != 1)}"
        raise UsageProblem(f"Session {session_id} has {count}, so it cannot be forked at turn {turn}.")
    started = load_event(kept[0].version, kept[0].data)
    forked = new_id("s")
    first = replace(started, session_id=forked, forked_from=session_id, forked_at=end or 1)
    rows = [NewRow(first.type, VERSION, dump_event(first)), *kept[1 : end or 1]]
    # If the fork ends before the mark of an import, its events are somebody else's too.
    later = [one.event for _, one in events_of(log, session_stream(session_id), after=end or 1)]
    how: Literal["fork", "import"] = "import" if SessionCopied("import") in later else "fork"
    _store(log, forked, rows, SessionCopied(how), blobs=())
    return forked


def export_lines(log: Log, session_id: str) -> Iterator[str]:
    stream = session_stream(session_id)
    yield json.dumps({"handrail_export": FORMAT, "session": session_id})
    count = 0
    blobs: dict[str, None] = {}
    for row, one in events_of(log, stream):
        count += 1
        blobs.update(dict.fromkeys(_blobs(one)))
        if isinstance(one.event, RequestStarted | RequestContinued | SideAsked):
            blobs.update(dict.fromkeys(chain_hashes(log.blob, one.event.body, blobs)))
        yield json.dumps([row.seq, row.epoch, row.at, row.version, row.type, row.data, row.hash.hex()])
    kept = 0
    for sha256 in blobs:
        if data := log.blob(sha256):
            kept += 1
            yield json.dumps({"blob": base64.b64encode(zlib.compress(data)).decode()})
    yield json.dumps({"end": count, "blobs": kept})


class BrokenExport(ValueError):
    """For the user: what is wrong with an export."""


def import_lines(log: Log, lines: Iterable[str]) -> str:
    """Import a session; returns its id: its own if that is free, else a new one."""
    session_id, rows, blobs, _ = read_export(lines)
    if log.head(session_stream(session_id)):
        session_id = new_id("s")
        started = load_event(rows[0].version, rows[0].data)
        fresh = replace(started, session_id=session_id)
        rows[0] = NewRow(fresh.type, VERSION, dump_event(fresh))
    _store(log, session_id, rows, SessionCopied(how="import"), blobs)
    return session_id


class Export(NamedTuple):
    """An export that is whole and can be loaded."""

    session_id: str
    rows: list[NewRow]
    blobs: list[bytes]
    events: list[Recorded]


def read_export(lines: Iterable[str]) -> Export:
    """Check and read an export; raises UsageProblem where it is not a whole one."""
    try:
        return _read_export(lines)
    except (ValueError, KeyError, TypeError, IndexError, zlib.error) as error:
        why = f": {error}" if isinstance(error, BrokenExport) else ""
        raise UsageProblem(
            f"This is not a complete export of a session{why}. Nothing was imported; export it again."
        ) from error


def _read_export(lines: Iterable[str]) -> Export:
    iterator = iter(lines)
    head = json.loads(next(iterator, "{}"))
    if not isinstance(head, dict) or head.get("handrail_export") != FORMAT:
        raise BrokenExport("the first line is not that of an export")
    if not SESSION_ID.fullmatch(head["session"]):
        raise BrokenExport("its session id is not valid")
    stream = session_stream(head["session"])
    rows: list[NewRow] = []
    blobs: list[bytes] = []
    events: list[Recorded] = []
    before, end, state = first_hash(stream), None, SessionState()
    for line in iterator:
        item = json.loads(line)
        if isinstance(item, list):
            seq, epoch, at, version, kind, data, digest = item
            row = Row(stream, seq, epoch, at, version, kind, data, bytes.fromhex(digest))
            before = row_hash(before, row)
            if before != row.hash or row.seq != len(rows) + 1:
                raise BrokenExport(f"event {len(rows) + 1} was changed")
            events.append(_check_row(row, state))
            rows.append(NewRow(row.type, row.version, row.data))
        elif "blob" in item:
            packed = zlib.decompressobj()
            blobs.append(packed.decompress(base64.b64decode(item["blob"], validate=True), LARGEST_BLOB))
            if not packed.eof:
                raise BrokenExport("a stored content is too large or cut off")
        else:
            end = item
    if end != {"end": len(rows), "blobs": len(blobs)} or not rows:
        raise BrokenExport("it ends too early")
    if not isinstance(load_event(rows[0].version, rows[0].data), SessionStarted):
        raise BrokenExport("it does not begin with a session's first event")
    return Export(head["session"], rows, blobs, events)


def _check_row(row: Row, state: SessionState) -> Recorded:
    """Fold the event as loading the session would: what cannot be loaded is not imported."""
    if not 1 <= row.version <= VERSION:
        raise BrokenExport(f"event {row.seq} has a format that this version of Handrail does not know")
    try:
        one = event_from_row(row)
    except StorageProblem as error:
        raise BrokenExport(f"event {row.seq} cannot be read by this version of Handrail") from error
    places = [getattr(one.event, name) for name in POINTERS.get(one.event.type, ())]
    if one.event.type != row.type or any(place is not None and not 0 <= place < row.seq for place in places):
        raise BrokenExport(f"event {row.seq} contradicts itself")
    if not is_storable(one.event):
        raise BrokenExport(f"event {row.seq} cannot be stored")
    state.apply(one)
    return one


def _store(
    log: Log, session_id: str, rows: list[NewRow], copied: SessionCopied, blobs: Iterable[bytes]
) -> None:
    stream = session_stream(session_id)
    log.append(stream, [*rows, NewRow(copied.type, VERSION, dump_event(copied))], expected=0, blobs=blobs)
    log.set_label(stream, to_json(label_of(Session(log, session_id).load().state)))


def _blobs(one: Recorded) -> list[str]:
    """Hashes of the stored contents that an event names."""
    match one.event:
        case (
            AnswerReceived(raw=sha256)
            | Answered(raw=sha256)
            | RequestFailed(raw=sha256)
            | SideAnswered(raw=sha256)
        ):
            return [sha256] if sha256 else []
        case SubagentEvent() as event:
            return _blobs(one._replace(event=inner_event(event)))
        case ToolFinished(output=sha256, images=images):
            return [*([sha256] if sha256 else []), *(image.sha256 for image in images)]
        case StageCompleted(blob=sha256) if sha256:
            return [sha256]
        case UserMessage(images=images):
            return [image.sha256 for image in images]
        case ChangePrepared(files=files):
            return [sha256 for file in files for sha256 in (file.old_sha256, file.new_sha256) if sha256]
        case _:
            return []
