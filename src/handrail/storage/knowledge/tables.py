"""The tables of a knowledge base, and how its file is opened."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handrail.protocol.errors import StorageProblem
from handrail.storage.database import BUSY_SECONDS, sqlite_errors

APPLICATION_ID = 0x48524B42  # "HRKB"
VERSION = 1
TABLES = """
CREATE TABLE documents (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    source     TEXT NOT NULL UNIQUE,       -- an absolute path or a URL
    name       TEXT NOT NULL,
    tier       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    sha256     TEXT NOT NULL,              -- of the bytes that were read
    size       INTEGER NOT NULL,
    at         INTEGER NOT NULL,           -- milliseconds
    paragraphs INTEGER NOT NULL,
    notice     TEXT NOT NULL               -- what the user should know, such as pages without text
);

CREATE TABLE paragraphs (
    number   INTEGER PRIMARY KEY,
    document INTEGER NOT NULL,
    key      TEXT NOT NULL,                -- stable within the document
    ordinal  INTEGER NOT NULL,
    heading  TEXT NOT NULL,
    text     TEXT NOT NULL,
    start    INTEGER NOT NULL,             -- offset in the document's text, in characters
    line     INTEGER NOT NULL,             -- 0: unknown
    page     INTEGER NOT NULL,             -- 0: the document has no pages
    slot     INTEGER,                      -- where its vector is; NULL until it has one
    UNIQUE (document, key)
);

CREATE INDEX paragraphs_in_order ON paragraphs (document, ordinal);

CREATE UNIQUE INDEX paragraphs_by_slot ON paragraphs (slot) WHERE slot IS NOT NULL;

CREATE INDEX paragraphs_without_vector ON paragraphs (number) WHERE slot IS NULL;

CREATE VIRTUAL TABLE words USING fts5(
    heading, text, content='paragraphs', content_rowid='number', tokenize='porter unicode61'
);

CREATE TABLE links (
    paragraph INTEGER NOT NULL,
    role      TEXT NOT NULL,               -- defines or refers
    kind      TEXT NOT NULL,
    key       TEXT NOT NULL,
    label     TEXT NOT NULL,               -- as it is written in the text
    PRIMARY KEY (paragraph, role, kind, key)
) WITHOUT ROWID;

CREATE INDEX links_by_key ON links (kind, key, role, paragraph);

CREATE TABLE free_slots (
    slot    INTEGER PRIMARY KEY,
    cleared INTEGER NOT NULL               -- 0: the removed vector may still be in the file
);

CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
REPAIR = "Move its folder away, and add the documents again."


@contextmanager
def knowledge_errors(path: Path) -> Iterator[None]:
    """Turn sqlite3 errors into ours."""
    with sqlite_errors(path, "knowledge base", REPAIR):
        yield


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode, with the tables; raises StorageProblem."""
    with knowledge_errors(path):
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_size = -32768")
            connection.execute("PRAGMA mmap_size = 1073741824")
            version = _migrate(connection)
        except BaseException:
            connection.close()
            raise
    if version != VERSION:
        connection.close()
        raise StorageProblem(
            f"{path} was written by another program or a newer Handrail (format {version}). "
            "Upgrade Handrail, or move the file away."
        )
    return connection


def _migrate(connection: sqlite3.Connection) -> int:
    """The version of the file, after making the tables in an empty one."""
    version = _version(connection)
    if version:
        return version
    connection.execute("BEGIN IMMEDIATE")
    if _version(connection) == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        for statement in TABLES.split(";\n\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    return _version(connection)


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All or nothing, durable when it ends."""
    with knowledge_errors(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
