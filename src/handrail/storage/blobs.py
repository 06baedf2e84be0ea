"""Stored contents: by their hash, compressed, bounded."""

import hashlib
import sqlite3
import zlib
from collections.abc import Collection
from typing import NamedTuple

HOUR = 3_600_000
"""In milliseconds. A content that is stored again counts as used again, to the hour."""
SAFE = 2 * HOUR
"""What was used so lately is not pruned: a commit of this very moment may speak of it."""


class Room(NamedTuple):
    """What stored contents take."""

    contents: int
    size: int
    """Bytes, compressed."""


class Damaged(ValueError):
    """What is stored is not what was stored."""


def store(db: sqlite3.Connection, data: bytes, now: int) -> int:
    """Within a transaction: keep the content; how many bytes that took."""
    sha256 = hashlib.sha256(data).hexdigest()
    found = db.execute("SELECT at FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    if found:
        if now - found[0] > HOUR:
            db.execute("UPDATE blobs SET at = ? WHERE sha256 = ?", (now, sha256))
        return 0
    packed = zlib.compress(data, level=1)
    db.execute("INSERT INTO blobs VALUES (?, ?, ?, ?)", (sha256, len(data), now, packed))
    return len(packed)


def read(db: sqlite3.Connection, sha256: str) -> bytes | None:
    """The content with this hash; None when it is not kept (any more); raises Damaged."""
    found = db.execute("SELECT data FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    if not found:
        return None
    try:
        data = zlib.decompress(found[0])
    except zlib.error as error:
        raise Damaged(sha256) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Damaged(sha256)
    return data


def room(db: sqlite3.Connection) -> Room:
    """How many contents there are, and the bytes they take."""
    count, size = db.execute("SELECT count(*), coalesce(sum(length(data)), 0) FROM blobs").fetchone()
    return Room(count, size)


def room_of(db: sqlite3.Connection, hashes: Collection[str]) -> Room:
    """The same of some of them."""
    sizes = dict(db.execute("SELECT sha256, length(data) FROM blobs"))
    found = [sizes[sha256] for sha256 in hashes if sha256 in sizes]
    return Room(len(found), sum(found))


def prune(db: sqlite3.Connection, limit: int, needed: Collection[str], now: int) -> Room:
    """Within a transaction: drop the oldest until all fits, never what is needed; what was dropped."""
    dropped = droppable(db, limit, needed, now)
    db.executemany("DELETE FROM blobs WHERE sha256 = ?", [(sha256,) for sha256 in dropped])
    return Room(len(dropped), sum(dropped.values()))


def droppable(db: sqlite3.Connection, limit: int, needed: Collection[str], now: int) -> dict[str, int]:
    """{hash: size} of what would have to go for all to fit."""
    over = room(db).size - limit
    found: dict[str, int] = {}
    freed = 0
    rows = db.execute("SELECT sha256, length(data) FROM blobs WHERE at < ? ORDER BY at", (now - SAFE,))
    for sha256, size in rows:
        if freed >= over:
            break
        if sha256 not in needed:
            found[sha256] = size
            freed += size
    return found
