"""Stored file contents and outputs: by hash, compressed, pruned to a limit."""

import hashlib
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from handrail.storage.log_database import LogDatabase

HOUR = 3_600_000
"""Milliseconds. A content that is stored again counts as used again, to the hour."""
KEEP_MS = 2 * HOUR
"""A content that was used this recently is not pruned: a commit in progress may refer to it."""


MAX_VALUES = 500
"""In one statement."""


class StoredSize(NamedTuple):
    contents: int
    size: int
    """Bytes, compressed."""


class DamagedBlob(ValueError):
    """The stored bytes do not have their hash."""


def store_blobs(db: LogDatabase, contents: Iterable[bytes], now: int) -> None:
    """Keep the contents; within a transaction. In order of their hashes, so that two of them cannot lock
    each other out."""
    wanted = {hashlib.sha256(data).hexdigest(): data for data in contents}
    for names in batched(sorted(wanted), MAX_VALUES):
        marks = ", ".join("?" * len(names))
        found = db.rows(f"SELECT sha256, at FROM blobs WHERE sha256 IN ({marks}) ORDER BY sha256", names)
        # What was not used for long may be pruned at this moment: then it is stored again.
        known = {
            sha256
            for sha256, at in found
            if now - at <= HOUR or db.execute("UPDATE blobs SET at = ? WHERE sha256 = ?", (now, sha256))
        }
        db.executemany(
            "INSERT INTO blobs VALUES (?, ?, ?, ?) ON CONFLICT (sha256) DO NOTHING",
            [
                (sha256, len(wanted[sha256]), now, zlib.compress(wanted[sha256], level=1))
                for sha256 in names
                if sha256 not in known
            ],
        )


def batched(names: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(names[start : start + size]) for start in range(0, len(names), size))


def read_blob(db: LogDatabase, sha256: str) -> bytes | None:
    """The content with this hash; None if it is not stored; raises DamagedBlob."""
    found = db.rows("SELECT data FROM blobs WHERE sha256 = ?", (sha256,))
    if not found:
        return None
    try:
        data = zlib.decompress(found[0][0])
    except zlib.error as error:
        raise DamagedBlob(sha256) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DamagedBlob(sha256)
    return data


def _droppable(db: LogDatabase, limit: int, needed: Collection[str], now: int) -> dict[str, int]:
    """{hash: size} of the oldest contents that must go for the rest to fit."""
    over = db.rows("SELECT coalesce(sum(length(data)), 0) FROM blobs")[0][0] - limit
    found: dict[str, int] = {}
    rows = db.rows("SELECT sha256, length(data) FROM blobs WHERE at < ? ORDER BY at", (now - KEEP_MS,))
    for sha256, size in rows:
        if over <= 0:
            break
        if sha256 not in needed:
            found[sha256] = size
            over -= size
    return found


class BlobStore:
    """Versions of files, raw answers, outputs and images, by their hashes."""

    def __init__(self, database: LogDatabase) -> None:
        self._db = database

    def room(self, needed: Collection[str] | None = None) -> StoredSize:
        """The size of all contents, or of those that are needed."""
        found = [size for sha256, size in self.sizes().items() if needed is None or sha256 in needed]
        return StoredSize(len(found), sum(found))

    def sizes(self) -> dict[str, int]:
        """The size of each content, by its hash."""
        return dict(self._db.rows("SELECT sha256, length(data) FROM blobs"))

    def prune(self, limit: int, needed: Collection[str], began: float) -> dict[str, int]:
        """Drop the oldest until the rest fits; what was needed at `began` (seconds) stays.

        Returns the size of each content that was dropped, by its hash.
        """
        now = int(began * 1000)
        with self._db.transaction():
            dropped = _droppable(self._db, limit, needed, now)
            self._db.executemany(
                "DELETE FROM blobs WHERE sha256 = ? AND at < ?",
                [(sha256, now - KEEP_MS) for sha256 in sorted(dropped)],
            )
        return dropped

    def droppable(self, limit: int, needed: Collection[str], began: float) -> dict[str, int]:
        """What `prune` would drop."""
        return _droppable(self._db, limit, needed, int(began * 1000))

    def used_bytes(self) -> int:
        return self._db.used_bytes()
