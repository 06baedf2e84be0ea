"""How much disk space sessions use, and pruning what no rewind needs."""

import json
import time
from typing import Any, NamedTuple

from handrail.protocol.events import PruneAnnounced, Pruned
from handrail.protocol.ids import WORKSPACE_STREAM
from handrail.protocol.upcast import unpack_event
from handrail.protocol.values import to_dict
from handrail.sessions.session import Session
from handrail.sessions.session_list import list_sessions
from handrail.storage.blobs import StoredSize
from handrail.storage.event_log import Log
from handrail.storage.log_file import LogFile

PRUNE_TO_SHARE = 0.9
"""A prune goes below the limit, so that the next one is not needed at once."""
EVENTS_WITH_ANSWER = ("answer_received", "answered", "request_failed", "side_answered")
EVENTS_WITH_OUTPUT = ("tool_finished", "stage_completed")
EVENTS_WITH_CONTENT = ("change_prepared", "user_message", "tool_finished")
"""Events that name contents which must be kept."""
WRAPPED = "subagent_event"


class StorageUse(NamedTuple):
    sessions: int
    stored_bytes: int
    """What the whole log takes."""
    database: str
    """Where it is, and how quickly that answers; empty: in a file of this machine."""
    contents: StoredSize
    """File versions, requests, raw answers, whole outputs, pictures."""
    needed: StoredSize
    """Contents that a rewind or the conversation of a session that is not deleted still needs."""
    limit: int
    spare: "SpareContents"
    droppable: "SpareContents"


class SpareContents(NamedTuple):
    """Contents that nothing needs but the audit, by what they are."""

    requests: StoredSize
    answers: StoredSize
    outputs: StoredSize

    @property
    def contents(self) -> int:
        return sum(kind.contents for kind in self)

    @property
    def size(self) -> int:
        return sum(kind.size for kind in self)


def measure_storage(log: Log, limit: int) -> StorageUse:
    kept = needed_hashes(log)
    sizes = log.contents.sizes()
    return StorageUse(
        len(list_sessions(log, deleted=True)),
        log.database.stored_bytes(),
        _database(log),
        log.contents.room(),
        log.contents.room(kept),
        limit,
        _by_kind(log, {sha256: size for sha256, size in sizes.items() if sha256 not in kept}),
        _by_kind(log, log.contents.droppable(int(limit * PRUNE_TO_SHARE), kept, time.time())),
    )


def _database(log: Log) -> str:
    if isinstance(log.database, LogFile):
        return ""
    began = time.monotonic()
    log.head(WORKSPACE_STREAM)
    return f"{log.database.place}; it answers in {(time.monotonic() - began) * 1000:.1f} ms"


def prune(log: Log, limit: int, now: float | None = None) -> SpareContents:
    """Drop the oldest unneeded contents until the rest fits; returns what was dropped."""
    began = time.time() if now is None else now
    return _by_kind(log, log.contents.prune(int(limit * PRUNE_TO_SHARE), needed_hashes(log), began))


def prune_announcement(log: Log, limit: int) -> PruneAnnounced | None:
    """What has to go, if more than the limit is used; costs nothing otherwise."""
    if log.contents.used_bytes() <= limit:
        return None
    share = int(limit * PRUNE_TO_SHARE)
    spare = _by_kind(log, log.contents.droppable(share, needed_hashes(log), time.time()))
    counts = {name: kind.contents for name, kind in spare._asdict().items()}
    return PruneAnnounced(**counts, size=spare.size) if spare.contents else None


def prune_as_announced(session: Session, limit: int) -> None:
    dropped = prune(session.log, limit)
    counts = {name: kind.contents for name, kind in dropped._asdict().items()}
    if dropped.contents:
        session.append(Pruned(**counts, size=dropped.size))


def _by_kind(log: Log, sizes: dict[str, int]) -> SpareContents:
    """The contents as raw answers, whole outputs, and the rest: parts of requests."""
    if not sizes:
        return SpareContents(*[StoredSize(0, 0)] * 3)
    kinds: dict[str, str] = {}
    for _, data in log.of_types((*EVENTS_WITH_ANSWER, *EVENTS_WITH_OUTPUT, WRAPPED)):
        event = _inner(json.loads(data))
        if event["type"] not in (*EVENTS_WITH_ANSWER, *EVENTS_WITH_OUTPUT):
            continue
        raw = event.get("raw", "")
        output = event.get("blob" if event["type"] == "stage_completed" else "output", "")
        kinds[raw or output] = "answers" if raw else "outputs"
    found: dict[str, list[int]] = {"requests": [], "answers": [], "outputs": []}
    for sha256, size in sizes.items():
        found[kinds.get(sha256, "requests")].append(size)
    return SpareContents(*(StoredSize(len(each), sum(each)) for each in found.values()))


def needed_hashes(log: Log) -> set[str]:
    """Hashes of the contents to keep: of every change, and of pictures in conversations."""
    alive = {f"session:{info.id}" for info in list_sessions(log)}
    found: set[str] = set()
    for row in log.begun_anywhere():
        found |= _hashes_in(to_dict(unpack_event(row.data)))
    for stream, data in log.of_types((*EVENTS_WITH_CONTENT, WRAPPED)):
        event = _inner(json.loads(data))
        if stream in alive and event["type"] in EVENTS_WITH_CONTENT:
            found |= _hashes_in(event)
    return found


def _inner(event: dict[str, Any]) -> dict[str, Any]:
    """The event, or the one of a sub-agent inside it."""
    inner: dict[str, Any] = event["event"] if event["type"] == WRAPPED else event
    return inner


def _hashes_in(event: dict[str, Any]) -> set[str]:
    files = event["files"] if event["type"] == "change_prepared" else ()
    hashes = {file[key] for file in files for key in ("old_sha256", "new_sha256")}
    hashes |= {image["sha256"] for image in event.get("images", ())}
    return hashes - {""}
