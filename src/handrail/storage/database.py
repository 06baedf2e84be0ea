"""Opening the database: locks, pragmas, the state of the write-ahead log, and errors made ours."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handrail.protocol.errors import StorageBusy, StorageDamaged, StorageFull, StorageProblem
from handrail.storage import schema

BUSY_SECONDS = 10.0
NEXT_START = "Start Handrail again: it keeps the damaged file and repairs the log."
DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn every sqlite3 error into one of ours, and remember damage so that the next start repairs it."""
    try:
        with _sqlite_errors(path):
            yield
    except StorageDamaged:
        damage_mark(path.parent).touch()
        raise


def damage_mark(folder: Path) -> Path:
    """The file whose presence says that the log was found damaged."""
    return folder / "log.damaged"


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in DAMAGE:
            raise StorageDamaged(f"The log {path} is damaged ({error}). {NEXT_START}") from error
        if code == sqlite3.SQLITE_FULL:
            raise StorageFull(f"No room to write to {path}. Free some disk space, then go on.") from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StorageBusy(
                f"Another process kept {path} busy for {BUSY_SECONDS:.0f} s. Try again, or close it."
            ) from error
        if isinstance(error, sqlite3.OperationalError) and code in (0, sqlite3.SQLITE_ERROR):
            # A flipped byte in a schema or record header shows as "no such column" or undecodable text.
            raise StorageDamaged(f"The log {path} cannot be read ({error}). {NEXT_START}") from error
        raise StorageProblem(
            f"The log {path} cannot be used: {error}. Check disk and permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise StorageDamaged(
            f"The log {path} holds bytes that were never written to it ({error})."
        ) from error


class FileLock:
    """A lock that dies with its process. Shared by all who have the database open; alone for repairs."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def try_alone(self) -> bool:
        return self._try(fcntl.LOCK_EX)

    def share(self, deadline: float) -> None:
        """Wait until nobody repairs the database."""
        while not self._try(fcntl.LOCK_SH):
            if time.monotonic() > deadline:
                raise StorageBusy("Another process is repairing the log. Wait for it, then try again.")
            time.sleep(0.02)

    def close(self) -> None:
        os.close(self.descriptor)

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def connect(path: Path) -> sqlite3.Connection:
    """A connection with our pragmas and tables; statements commit by themselves unless told to begin."""
    with storage_errors(path):
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_size_limit = 0")  # for the same reason as `begin_wal_anew`
            connection.execute("PRAGMA cache_size = -4096")
            schema.prepare(connection)
            found, ours = schema.stored_version(connection), schema.is_ours(connection)
        except BaseException:
            connection.close()
            raise
    if not ours:
        connection.close()
        raise StorageProblem(f"{path} is a database of another program. Move it away.")
    if found > schema.VERSION:
        connection.close()
        raise StorageProblem(f"{path} was written by a newer Handrail (format {found}). Upgrade Handrail.")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """All or nothing, durable when it ends."""
    with storage_errors(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def begin_wal_anew(connection: sqlite3.Connection) -> None:
    """Empty the write-ahead log, if nobody reads it.

    Old pages behind the new header of a commit that a kill cut off would make it look whole, and damaged.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")


def last_commit_in_wal(wal: Path) -> int:
    """Number of the last committed frame that the write-ahead log's frame headers tell of, valid or not.

    SQLite silently ignores everything from the first bad frame on; comparing this number with the frames
    it accepted is how a damaged tail is noticed.
    """
    try:
        data = wal.read_bytes()
    except FileNotFoundError:
        return 0
    if len(data) < 32 + 24:
        return 0
    page_size = int.from_bytes(data[8:12])
    if page_size not in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536):
        page_size = 4096
    salts = data[32 + 8 : 32 + 16]
    commit, number = 0, 0
    # Whole frames only: one that was cut off in writing was never committed.
    for start in range(32, len(data) - 24 - page_size + 1, 24 + page_size):
        header = data[start : start + 24]
        number += 1
        if header[8:16] != salts:
            continue
        if int.from_bytes(header[4:8]):
            commit = number
    return commit
