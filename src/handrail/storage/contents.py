"""The stored contents of a log as a whole: what they take, and dropping the oldest."""

import sqlite3
from collections.abc import Collection
from pathlib import Path

from handrail.storage import blobs
from handrail.storage.blobs import Room
from handrail.storage.database import storage_errors, transaction


class Contents:
    """Versions of files, raw answers, outputs and pictures, by their hashes."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def room(self, needed: Collection[str] | None = None) -> Room:
        """What all of them take, or only those that are needed."""
        with storage_errors(self._path):
            if needed is None:
                return blobs.room(self._connection)
            return blobs.room_of(self._connection, needed)

    def prune(self, limit: int, needed: Collection[str], began: float) -> Room:
        """Drop the oldest until the rest fits; what was needed at `began` (seconds) stays."""
        with transaction(self._connection, self._path) as db:
            return blobs.prune(db, limit, needed, int(began * 1000))

    def droppable(self, limit: int, needed: Collection[str], began: float) -> Room:
        """What `prune` would drop."""
        with storage_errors(self._path):
            found = blobs.droppable(self._connection, limit, needed, int(began * 1000))
        return Room(len(found), sum(found.values()))

    def used_bytes(self) -> int:
        """Bytes of the whole file that hold something."""
        with storage_errors(self._path):
            pages, free, size = (
                self._connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)
