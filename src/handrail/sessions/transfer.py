"""Fork, export and import: a session's past in another stream, or in one file.

An export is JSON Lines: a head (`handrail_export`, the session's id), one line an event exactly as it was
hashed, one line a stored content, and a last line that says how many there were, so that a cut file is known.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    Answered,
    ChangePrepared,
    Recorded,
    RequestFailed,
    SessionCopied,
    SessionStarted,
    SideAnswered,
    StageCompleted,
    ToolFinished,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.ids import new_id, session_stream
from handrail.protocol.upcast import VERSION, dump_event, is_storable, load_event
from handrail.sessions.handle import Session, label_of, recorded
from handrail.sessions.state import State
from handrail.storage.log import Log, NewRow, Row, first_hash, row_hash

FORMAT = 1
PAGE = 500
SESSION_ID = re.compile(r"\w{1,40}", re.ASCII)
LARGEST_BLOB = 64_000_000


def events_of(log: Log, stream: str, after: int = 0) -> Iterator[tuple[Row, Recorded]]:
    """All events of a stream, or those after one, page by page, each checked."""
    while rows := log.read(stream, after=after, limit=PAGE):
        yield from ((row, recorded(row)) for row in rows)
        after = rows[-1].seq


def fork(log: Log, session_id: str, turn: int | None) -> str:
    """A new session with the same past, up to the end of a turn (the last finished one when None)."""
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
        raise UsageProblem(f"Session {session_id} has {count}; there is no turn {turn} to fork at.")
    started = load_event(kept[0].version, kept[0].data)
    forked = new_id("s")
    first = started.model_copy(
        update={"session_id": forked, "forked_from": session_id, "forked_at": end or 1}
    )
    rows = [NewRow(first.type, VERSION, dump_event(first)), *kept[1 : end or 1]]
    # What ends before the word of its import is somebody else's, in the fork too.
    imported = any(_is_import(one) for _, one in events_of(log, session_stream(session_id), after=end or 1))
    _store(log, forked, rows, SessionCopied(how="import" if imported else "fork"), blobs=())
    return forked


def _is_import(one: Recorded) -> bool:
    return isinstance(one.event, SessionCopied) and one.event.how == "import"


def export_lines(log: Log, session_id: str) -> Iterator[str]:
    """The session as the lines of one file."""
    stream = session_stream(session_id)
    yield json.dumps({"handrail_export": FORMAT, "session": session_id})
    count = 0
    blobs: dict[str, None] = {}
    for row, one in events_of(log, stream):
        count += 1
        blobs.update(dict.fromkeys(_blobs(one)))
        yield json.dumps([row.seq, row.epoch, row.at, row.version, row.type, row.data, row.hash.hex()])
    kept = 0
    for sha256 in blobs:
        if data := log.blob(sha256):
            kept += 1
            yield json.dumps({"blob": base64.b64encode(zlib.compress(data)).decode()})
    yield json.dumps({"end": count, "blobs": kept})


class Broken(ValueError):
    """What is wrong with an export, in words for the user."""


def import_lines(log: Log, lines: Iterable[str]) -> str:
    """The id of the session that the lines hold: its own where that is free, else a new one."""
    try:
        session_id, rows, blobs = _read(lines)
    except (ValueError, KeyError, TypeError, IndexError, zlib.error, ValidationError) as error:
        why = f": {error}" if isinstance(error, Broken) else ""
        raise UsageProblem(f"This is not a whole export of a session{why}. Nothing was imported.") from error
    if log.head(session_stream(session_id)):
        session_id = new_id("s")
        started = load_event(rows[0].version, rows[0].data)
        fresh = started.model_copy(update={"session_id": session_id})
        rows[0] = NewRow(fresh.type, VERSION, dump_event(fresh))
    _store(log, session_id, rows, SessionCopied(how="import"), blobs)
    return session_id


def _read(lines: Iterable[str]) -> tuple[str, list[NewRow], list[bytes]]:
    iterator = iter(lines)
    head = json.loads(next(iterator, "{}"))
    if not isinstance(head, dict) or head.get("handrail_export") != FORMAT:
        raise Broken("its first line does not say so")
    if not SESSION_ID.fullmatch(head["session"]):
        raise Broken("it has no proper id")
    stream = session_stream(head["session"])
    rows: list[NewRow] = []
    blobs: list[bytes] = []
    before, end, state = first_hash(stream), None, State()
    for line in iterator:
        item = json.loads(line)
        if isinstance(item, list):
            row = _row(stream, item)
            before = row_hash(before, row)
            if before != row.hash or row.seq != len(rows) + 1:
                raise Broken(f"event {len(rows) + 1} is not as it was written")
            _check(row, state)
            rows.append(NewRow(row.type, row.version, row.data))
        elif "blob" in item:
            blobs.append(_unpacked(item["blob"]))
        else:
            end = item
    if end != {"end": len(rows), "blobs": len(blobs)} or not rows:
        raise Broken("it ends too early")
    if not isinstance(load_event(rows[0].version, rows[0].data), SessionStarted):
        raise Broken("it does not begin with the start of a session")
    return head["session"], rows, blobs


def _check(row: Row, state: State) -> None:
    """Fold the event as opening the session will: what would not open is not imported."""
    if not 1 <= row.version <= VERSION:
        raise Broken(f"event {row.seq} is of a version that this Handrail does not know")
    one = recorded(row)
    points_at = {"compacted": "upto", "attempt_started": "keep", "rewound": "keep"}.get(one.event.type)
    place = getattr(one.event, points_at) if points_at else None
    if one.event.type != row.type or (place is not None and not 0 <= place < row.seq):
        raise Broken(f"event {row.seq} contradicts itself")
    if not is_storable(one.event):
        raise Broken(f"event {row.seq} holds something that is no value")
    state.apply(one)


def _unpacked(text: str) -> bytes:
    packed = zlib.decompressobj()
    data = packed.decompress(base64.b64decode(text, validate=True), LARGEST_BLOB)
    if not packed.eof:
        raise Broken("a content in it is too large or cut off")
    return data


def _row(stream: str, fields: list[Any]) -> Row:
    seq, epoch, at, version, kind, data, digest = fields
    return Row(stream, seq, epoch, at, version, kind, data, bytes.fromhex(digest))


def _store(
    log: Log, session_id: str, rows: list[NewRow], copied: SessionCopied, blobs: Iterable[bytes]
) -> None:
    stream = session_stream(session_id)
    log.append(stream, [*rows, NewRow(copied.type, VERSION, dump_event(copied))], expected=0, blobs=blobs)
    log.set_label(stream, label_of(Session(log, session_id).load().state).model_dump_json())


def _blobs(one: Recorded) -> list[str]:
    """Hashes of the stored contents that an event speaks of."""
    match one.event:
        case Answered(raw=sha256) | RequestFailed(raw=sha256) | SideAnswered(raw=sha256):
            return [sha256] if sha256 else []
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
