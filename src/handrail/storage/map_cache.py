"""The cache of the repository map: a file of its own beside the log, which can be thrown away at any time."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

VERSION = 1
"""Raised when what is kept, or how it is found, changes: a file of another version is made anew."""
READ_SECONDS = 0.05
"""A turn does not wait for its map."""
WRITE_SECONDS = 5.0
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
SUFFIXES = ("", "-wal", "-shm", "-journal")

TABLES = f"""
CREATE TABLE files (
    path TEXT PRIMARY KEY,
    stat TEXT NOT NULL,                   -- as it was when the file was read; empty: read it again
    hash BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE symbols (
    hash BLOB PRIMARY KEY,                -- of the file's content and the language it is read as
    data BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE ranked (
    path    TEXT PRIMARY KEY,
    score   REAL NOT NULL,
    outline TEXT NOT NULL,
    near    TEXT NOT NULL                 -- JSON: other files and how much it has to do with them
) WITHOUT ROWID;
CREATE INDEX by_score ON ranked (score DESC);
CREATE TABLE counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""


class Ranked(NamedTuple):
    """A file's place in the map."""

    path: str
    score: float
    outline: str
    near: str


class KnownFile(NamedTuple):
    """What was read last under a path."""

    stat: str
    hash: bytes


class Published(NamedTuple):
    """What a turn is shown: never more rows than it asked for."""

    best: tuple[Ranked, ...] = ()
    near: tuple[tuple[Ranked, float], ...] = ()
    """Those that have to do with the files asked about, and how much."""
    counts: Mapping[str, int] = {}


NOTHING = Published()
BEST = "SELECT path, score, outline, near FROM ranked ORDER BY score DESC LIMIT ?"
NEAR = """
SELECT other.path, other.score, other.outline, other.near, sum(each.value) AS weight
FROM ranked AS played, json_each(played.near) AS each, ranked AS other
WHERE played.path IN ({}) AND other.path = each.key
GROUP BY other.path ORDER BY weight DESC LIMIT ?
"""


def read_published(file: Path, most: int, played: Sequence[str]) -> Published:
    """The best rows, and those near the files in play; nothing where no cache can be read now."""
    if not file.exists():
        return NOTHING
    try:
        # Read only, so that a turn never does a builder's work: no recovery, no checkpoint.
        uri = f"file:{quote(str(file))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=READ_SECONDS, isolation_level=None)) as found:
            if found.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                return NOTHING
            found.execute("BEGIN")
            near = found.execute(NEAR.format(",".join("?" * len(played))), (*played, most))
            return Published(
                tuple(Ranked(*row) for row in found.execute(BEST, (most,))),
                tuple((Ranked(*row[:4]), row[4]) for row in near),
                dict(found.execute("SELECT name, value FROM counts")),
            )
    except (sqlite3.Error, UnicodeError):
        return NOTHING


class CacheBroken(Exception):
    """The cache cannot be read or written: remove it, and make another, or go without."""


class MapCache:
    """The cache as its one writer has it."""

    def __init__(self, file: Path) -> None:
        """Opens the cache; a damaged one, or one of another version, is thrown away for an empty one."""
        try:
            self._connection = _open(file)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", DAMAGED[0]) & 0xFF not in DAMAGED:
                raise CacheBroken(str(error)) from error
            for suffix in SUFFIXES:
                file.with_name(file.name + suffix).unlink(missing_ok=True)
            with _broken():
                self._connection = _open(file)

    def close(self) -> None:
        self._connection.close()

    def files(self) -> dict[str, KnownFile]:
        with _broken():
            return {row[0]: KnownFile(row[1], row[2]) for row in self._all("SELECT * FROM files")}

    def hashes(self) -> set[bytes]:
        """Of every content whose symbols are known."""
        with _broken():
            return {row[0] for row in self._all("SELECT hash FROM symbols")}

    def keep(
        self, files: Iterable[tuple[str, KnownFile]], symbols: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """Remember what was read, all or nothing."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO symbols VALUES (?, ?)", symbols)
            rows = ((path, known.stat, known.hash) for path, known in files)
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)

    def forget(self, paths: Iterable[str]) -> None:
        """Files that are there no more."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))

    def symbols(self) -> Iterator[tuple[str, bytes]]:
        """Every file's path with what its content defines, one by one."""
        with _broken():
            yield from self._all("SELECT path, data FROM files JOIN symbols USING (hash) ORDER BY path")

    def publish(self, rows: Iterable[Ranked], counts: Mapping[str, int]) -> None:
        """Put this in the place of what turns were shown before; rows that stay as they are cost nothing."""
        with self._transaction() as connection:
            before = {row[0]: Ranked(*row) for row in connection.execute("SELECT * FROM ranked")}
            now = {row.path: row for row in rows}
            gone = [(path,) for path in before.keys() - now.keys()]
            connection.executemany("DELETE FROM ranked WHERE path = ?", gone)
            new = [row for path, row in now.items() if before.get(path) != row]
            connection.executemany("INSERT OR REPLACE INTO ranked VALUES (?, ?, ?, ?)", new)
            connection.executemany("INSERT OR REPLACE INTO counts VALUES (?, ?)", counts.items())

    def tidy(self, spare: int) -> None:
        """Forget contents that no file has any more, where there are more than `spare` of them."""
        unused = "FROM symbols WHERE hash NOT IN (SELECT hash FROM files)"
        with self._transaction() as connection:
            if connection.execute(f"SELECT count(*) {unused}").fetchone()[0] > spare:
                connection.execute(f"DELETE {unused}")

    def _all(self, query: str) -> sqlite3.Cursor:
        return self._connection.execute(query)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _broken():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


@contextmanager
def _broken() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        raise CacheBroken(str(error)) from error


def _open(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=WRITE_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            connection.executescript(f"BEGIN;{TABLES}COMMIT;")
        elif found != VERSION:
            raise sqlite3.DatabaseError(f"version {found}")
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("damaged")
    except BaseException:
        connection.close()
        raise
    return connection
