"""The tables, and how an older file becomes a newer one."""

import sqlite3

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
STEPS = {0: TABLES, 1: JOURNAL}
"""What makes a file of this version one of the next."""


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, and those that an older one of ours lacks."""
    if stored_version(connection) >= VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    version = stored_version(connection)
    if version == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    if version == 0 or is_ours(connection):
        for step in range(version, VERSION):
            for statement in STEPS[step].split(";\n\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {step + 1}")
    connection.execute("COMMIT")


def is_ours(connection: sqlite3.Connection) -> bool:
    """Whether the file is a log of Handrail's."""
    found: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return found == APPLICATION_ID


def stored_version(connection: sqlite3.Connection) -> int:
    """The version the file says it has; 0 for an empty one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
