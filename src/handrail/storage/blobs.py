"""Stored file contents and outputs: by hash, compressed, pruned to a limit."""

import hashlib
import sqlite3
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from handrail.storage.database import storage_errors, transaction

HOUR = 3_600_000
"""Milliseconds. A content that is stored again counts as used again, to the hour."""
KEEP_MS = 2 * HOUR
"""A content that was used this recently is not pruned: a commit in progress may refer to it."""


class StoredSize(NamedTuple):
    contents: int
    size: int
    """Bytes, compressed."""


class DamagedBlob(ValueError):
    """The stored bytes do not have their hash."""


def store_blob(db: sqlite3.Connection, data: bytes, now: int) -> None:
    """Keep the content; within a transaction."""
    sha256 = hashlib.sha256(data).hexdigest()
    found = db.execute("SELECT at FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    if not found:
        packed = zlib.compress(data, level=1)
        db.execute("INSERT INTO blobs VALUES (?, ?, ?, ?)", (sha256, len(data), now, packed))
    elif now - found[0] > HOUR:
        db.execute("UPDATE blobs SET at = ? WHERE sha256 = ?", (now, sha256))


def read_blob(db: sqlite3.Connection, sha256: str) -> bytes | None:
    """The content with this hash; None if it is not stored; raises DamagedBlob."""
    found = db.execute("SELECT data FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    if not found:
        return None
    try:
        data = zlib.decompress(found[0])
    except zlib.error as error:
        raise DamagedBlob(sha256) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DamagedBlob(sha256)
    return data


def _droppable(db: sqlite3.Connection, limit: int, needed: Collection[str], now: int) -> dict[str, int]:
    """{hash: size} of the oldest contents that must go for the rest to fit."""
    over = db.execute("SELECT coalesce(sum(length(data)), 0) FROM blobs").fetchone()[0] - limit
    found: dict[str, int] = {}
    rows = db.execute("SELECT sha256, length(data) FROM blobs WHERE at < ? ORDER BY at", (now - KEEP_MS,))
    for sha256, size in rows:
        if over <= 0:
            break
        if sha256 not in needed:
            found[sha256] = size
            over -= size
    return found


class BlobStore:
    """Versions of files, raw answers, outputs and images, by their hashes."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def room(self, needed: Collection[str] | None = None) -> StoredSize:
        """The size of all contents, or of those that are needed."""
        found = [size for sha256, size in self.sizes().items() if needed is None or sha256 in needed]
        return StoredSize(len(found), sum(found))

    def sizes(self) -> dict[str, int]:
        """The size of each content, by its hash."""
        with storage_errors(self._path):
            return dict(self._connection.execute("SELECT sha256, length(data) FROM blobs"))

    def prune(self, limit: int, needed: Collection[str], began: float) -> dict[str, int]:
        """Drop the oldest until the rest fits; what was needed at `began` (seconds) stays.

        Returns the size of each content that was dropped, by its hash.
        """
        with transaction(self._connection, self._path) as db:
            dropped = _droppable(db, limit, needed, int(began * 1000))
            db.executemany("DELETE FROM blobs WHERE sha256 = ?", [(sha256,) for sha256 in dropped])
        return dropped

    def droppable(self, limit: int, needed: Collection[str], began: float) -> dict[str, int]:
        """What `prune` would drop."""
        with storage_errors(self._path):
            return _droppable(self._connection, limit, needed, int(began * 1000))

    def used_bytes(self) -> int:
        """Bytes of the database file that are in use."""
        with storage_errors(self._path):
            pages, free, size = (
                self._connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)
