"""What sessions keep: how much room it takes, what of it a rewind still needs, and dropping the rest."""

import json
import time
from typing import Any, NamedTuple

from handrail.protocol.upcast import unpack_event
from handrail.sessions.catalogue import list_sessions
from handrail.storage.blobs import Room
from handrail.storage.log import Log

ENOUGH = 0.9
"""Pruned down to this share of the limit, so that it is not done again at once."""
SPEAKING = ("change_prepared", "user_message", "tool_finished")
"""Types of the events that name contents which have to stay."""


class StorageUse(NamedTuple):
    sessions: int
    file_bytes: int
    """The log itself, all of it."""
    contents: Room
    """Versions of files, raw answers, whole outputs, pictures."""
    needed: Room
    """Those of them that a rewind or a conversation of a session that is not deleted still needs."""
    limit: int
    droppable: Room
    """What a prune would drop now."""


def storage_use(log: Log, limit: int) -> StorageUse:
    """How much room the sessions of a workspace take."""
    kept = needed(log)
    return StorageUse(
        len(list_sessions(log, deleted=True)),
        log.path.stat().st_size,
        log.contents.room(),
        log.contents.room(kept),
        limit,
        log.contents.droppable(int(limit * ENOUGH), kept, time.time()),
    )


def prune(log: Log, limit: int, now: float | None = None) -> Room:
    """Drop the oldest contents that nothing needs until all fits; what was dropped."""
    began = time.time() if now is None else now
    return log.contents.prune(int(limit * ENOUGH), needed(log), began)


def prune_when_full(log: Log, limit: int) -> Room:
    """The same, where more is used than may be; costs nothing otherwise."""
    return prune(log, limit) if log.contents.used_bytes() > limit else Room(0, 0)


def needed(log: Log) -> set[str]:
    """Hashes of the contents that have to stay: of every change, and of pictures that a model is shown."""
    alive = {f"session:{info.id}" for info in list_sessions(log)}
    found: set[str] = set()
    for row in log.begun():
        found |= _named(unpack_event(row.data).model_dump())
    for stream, data in log.of_types(SPEAKING):
        if stream in alive:
            found |= _named(json.loads(data))
    return found


def _named(event: dict[str, Any]) -> set[str]:
    files = event["files"] if event["type"] == "change_prepared" else ()
    hashes = {file[key] for file in files for key in ("old_sha256", "new_sha256")}
    hashes |= {image["sha256"] for image in event.get("images", ())}
    return hashes - {""}
