"""The tables of a workspace in PostgreSQL: one schema for each, made by whoever opens it first."""

import hashlib

VERSION = 1
SCHEMA_PREFIX = "handrail_"

TABLES = """
CREATE TABLE streams (
    stream TEXT COLLATE "C" PRIMARY KEY,
    head BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    epoch BIGINT NOT NULL DEFAULT 0,
    touched BIGINT NOT NULL,
    label TEXT NOT NULL DEFAULT ''
);
CREATE TABLE events (
    stream TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    data TEXT NOT NULL,
    hash BYTEA NOT NULL,
    rowid BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- as SQLite has it
    UNIQUE (stream, seq)
);
CREATE TABLE inbox (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream TEXT COLLATE "C" NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX inbox_of_stream ON inbox (stream, id);
CREATE TABLE partials (
    stream TEXT COLLATE "C" NOT NULL,
    message TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    start BIGINT NOT NULL,
    text BYTEA NOT NULL, -- UTF-8, also of what TEXT cannot hold
    PRIMARY KEY (stream, message, kind, start)
);
CREATE TABLE blobs (
    sha256 TEXT COLLATE "C" PRIMARY KEY,
    size BIGINT NOT NULL,
    at BIGINT NOT NULL,
    data BYTEA NOT NULL
);
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL; -- is compressed already
CREATE TABLE snapshots (
    stream TEXT COLLATE "C" PRIMARY KEY,
    version BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    data TEXT NOT NULL,
    sha256 TEXT NOT NULL
);
CREATE TABLE recoveries (at BIGINT NOT NULL, report TEXT NOT NULL);
CREATE TABLE trees ( -- the folders, on any machine, whose files the sessions change
    tree TEXT COLLATE "C" PRIMARY KEY,
    host TEXT NOT NULL,
    folder BYTEA NOT NULL
);
CREATE TABLE journal (
    change TEXT COLLATE "C" PRIMARY KEY,
    stream TEXT COLLATE "C" NOT NULL,
    data TEXT NOT NULL,
    outcome TEXT NOT NULL,
    why TEXT NOT NULL,
    tree TEXT COLLATE "C" NOT NULL DEFAULT current_setting('handrail.tree')
);
CREATE TABLE leftovers (
    change TEXT COLLATE "C" PRIMARY KEY,
    data TEXT NOT NULL,
    tree TEXT COLLATE "C" NOT NULL DEFAULT current_setting('handrail.tree')
);
CREATE VIEW own_journal AS SELECT * FROM journal WHERE tree = current_setting('handrail.tree');
CREATE VIEW own_leftovers AS SELECT * FROM leftovers WHERE tree = current_setting('handrail.tree');
CREATE TABLE handrail (version BIGINT NOT NULL);
INSERT INTO handrail VALUES (0);
"""
MIGRATIONS = {0: TABLES}
"""What makes a schema of this version one of the next."""


def migration(schema: str, stored: int) -> str:
    """The statements of one transaction that bring a schema up to date; 0: there is none yet."""
    made = "" if stored else f"CREATE SCHEMA IF NOT EXISTS {schema};"
    steps = "".join(MIGRATIONS[version] for version in range(stored, VERSION))
    return f"{made} SET LOCAL search_path TO {schema}; {steps} UPDATE handrail SET version = {VERSION};"


def schema_name(workspace: str) -> str:
    """The schema of a workspace, as SQL names it."""
    return '"' + f"{SCHEMA_PREFIX}{workspace}".replace('"', '""') + '"'


def lock_key(schema: str, purpose: str, name: str = "") -> int:
    """The number that stands for a lock; others than ours are hit by chance only, once in 2**64."""
    digest = hashlib.sha256(f"{schema}\0{purpose}\0{name}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def channel_name(schema: str) -> str:
    """Where commits in the schema are announced."""
    return "handrail_" + hashlib.sha256(schema.encode()).hexdigest()[:24]
