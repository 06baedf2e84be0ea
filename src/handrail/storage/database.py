"""Open the SQLite database: tables, migrations, pragmas, transactions, errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handrail.protocol.errors import StorageBusy, StorageDamaged, StorageFull, StorageProblem

APPLICATION_ID = 0x48524C47  # "HRLG", so that `file` and we know what this is
VERSION = 2

TABLES = """
CREATE TABLE streams (
    stream TEXT PRIMARY KEY,
    head   INTEGER NOT NULL,              -- sequence number of the last event
    hash   BLOB NOT NULL,                 -- of the last event, the chain's end
    epoch  INTEGER NOT NULL DEFAULT 0,    -- raised by each new holder; an append under an older one fails
    touched INTEGER NOT NULL,             -- milliseconds, for lists
    label  TEXT NOT NULL DEFAULT ''       -- what a list shows of it; can be thrown away and rebuilt
) WITHOUT ROWID;

CREATE TABLE events (
    stream  TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    at      INTEGER NOT NULL,             -- milliseconds; for people, never for order
    version INTEGER NOT NULL,
    type    TEXT NOT NULL,
    data    TEXT NOT NULL,
    hash    BLOB NOT NULL,
    UNIQUE (stream, seq)
);

CREATE TABLE inbox (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    data   TEXT NOT NULL
);

CREATE TABLE partials (
    stream  TEXT NOT NULL,
    message TEXT NOT NULL,
    kind    TEXT NOT NULL,
    start   INTEGER NOT NULL,             -- offset in characters
    text    TEXT NOT NULL,
    PRIMARY KEY (stream, message, kind, start)
) WITHOUT ROWID;

CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    size   INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    data   BLOB NOT NULL                  -- zlib
);

CREATE TABLE snapshots (
    stream  TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    hash    BLOB NOT NULL,                -- of the event at seq: a snapshot of another past is not used
    data    TEXT NOT NULL,
    sha256  TEXT NOT NULL                 -- of the data: a damaged snapshot is thrown away, never believed
) WITHOUT ROWID;

CREATE TABLE recoveries (
    at     INTEGER NOT NULL,
    report TEXT NOT NULL
);
"""
JOURNAL = """
CREATE TABLE journal (
    change  TEXT PRIMARY KEY,
    stream  TEXT NOT NULL,
    data    TEXT NOT NULL,                -- the event that began the change set
    outcome TEXT NOT NULL,                -- empty, or what another process found the files to be
    why     TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE leftovers (
    change TEXT PRIMARY KEY,
    data   TEXT NOT NULL                  -- of an applied change set: displaced files may still lie there
) WITHOUT ROWID;
"""
MIGRATIONS = {0: TABLES, 1: JOURNAL}
"""What makes a file of this version one of the next."""


def migrate(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, and those that an older version lacks."""
    if stored_version(connection) >= VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    version = stored_version(connection)
    if version == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    if version == 0 or is_ours(connection):
        for step in range(version, VERSION):
            for statement in MIGRATIONS[step].split(";\n\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {step + 1}")
    connection.execute("COMMIT")


def is_ours(connection: sqlite3.Connection) -> bool:
    found: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return found == APPLICATION_ID


def stored_version(connection: sqlite3.Connection) -> int:
    """The version of the file; 0 for an empty one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


BUSY_SECONDS = 10.0
RESTART_HINT = "Start Handrail again: it keeps the damaged file and repairs the log."
DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn sqlite3 errors into ours, and mark damage so that the next start repairs it."""
    try:
        with sqlite_errors(path, "log", RESTART_HINT):
            yield
    except StorageDamaged:
        damage_mark(path.parent).touch()
        raise


def damage_mark(folder: Path) -> Path:
    """The file that exists if the log was found damaged."""
    return folder / "log.damaged"


@contextmanager
def sqlite_errors(path: Path, what: str, repair: str) -> Iterator[None]:
    """Turn sqlite3 errors into ours; `what` names the file to the user, `repair` what to do about damage."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in DAMAGE_CODES:
            raise StorageDamaged(f"The {what} {path} is damaged ({error}). {repair}") from error
        if code == sqlite3.SQLITE_FULL:
            message = f"The disk has no room to write to {path}. Free some disk space, then continue."
            raise StorageFull(message) from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            message = f"Another process kept {path} busy for {BUSY_SECONDS:.0f} s. Try again, or close it."
            raise StorageBusy(message) from error
        if isinstance(error, sqlite3.OperationalError) and code in (0, sqlite3.SQLITE_ERROR):
            # A flipped byte in a schema or record header shows as "no such column" or undecodable text.
            raise StorageDamaged(f"The {what} {path} cannot be read ({error}). {repair}") from error
        message = f"The {what} {path} cannot be used: {error}. Check disk and permissions."
        raise StorageProblem(message) from error
    except UnicodeDecodeError as error:
        raise StorageDamaged(f"The {what} {path} has text that is not UTF-8 ({error}).") from error


def connect(path: Path) -> sqlite3.Connection:
    """A connection with our pragmas and tables, in autocommit mode."""
    with storage_errors(path):
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_size_limit = 0")  # for the same reason as `truncate_wal`
            connection.execute("PRAGMA cache_size = -4096")
            migrate(connection)
            found, ours = stored_version(connection), is_ours(connection)
        except BaseException:
            connection.close()
            raise
    if not ours:
        connection.close()
        raise StorageProblem(f"{path} is another program's database. Move it away.")
    if found > VERSION:
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


def truncate_wal(connection: sqlite3.Connection) -> None:
    """Empty the write-ahead log, if nobody reads it.

    After a kill in a commit, old pages behind the new header would make the commit look complete but damaged.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")


def last_commit_in_wal(wal: Path) -> int:
    """The last committed frame according to the frame headers of the write-ahead log, valid or not.

    SQLite silently ignores everything from the first bad frame on. If it accepts fewer frames than this, the
    end of the log is damaged.
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
