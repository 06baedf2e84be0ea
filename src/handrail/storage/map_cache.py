"""The cache of the repository map, and the lock and mark of the process that builds it."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from handrail.config.files import FileLock, try_lock

VERSION = 1  # raised when what is kept changes: a file of another version is replaced by an empty one
READ_SECONDS = 0.05  # a turn does not wait for its map
WRITE_SECONDS = 5.0
DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
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
    path: str
    score: float
    outline: str
    near: str


class KnownFile(NamedTuple):
    stat: str
    hash: bytes


class Published(NamedTuple):
    best: tuple[Ranked, ...] = ()
    near: tuple[tuple[Ranked, float], ...] = ()  # files related to those asked about, and how closely
    counts: Mapping[str, int] = {}


NOTHING_PUBLISHED = Published()
BEST_QUERY = "SELECT path, score, outline, near FROM ranked ORDER BY score DESC LIMIT ?"
SYMBOLS_QUERY = """
SELECT path, data FROM ranked JOIN files USING (path) JOIN symbols USING (hash) ORDER BY score DESC LIMIT ?
"""
NEAR_QUERY = """
SELECT other.path, other.score, other.outline, other.near, sum(each.value) AS weight
FROM ranked AS played, json_each(played.near) AS each, ranked AS other
WHERE played.path IN ({}) AND other.path = each.key
GROUP BY other.path ORDER BY weight DESC LIMIT ?
"""


def read_published(file: Path, most: int, played: Sequence[str]) -> Published:
    """The best rows, and those near the files in play; nothing if the cache cannot be read now."""
    if not file.exists():
        return NOTHING_PUBLISHED
    try:
        with _read_only(file) as found:
            if found.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                return NOTHING_PUBLISHED
            found.execute("BEGIN")
            near = found.execute(NEAR_QUERY.format(",".join("?" * len(played))), (*played, most))
            return Published(
                tuple(Ranked(*row) for row in found.execute(BEST_QUERY, (most,))),
                tuple((Ranked(*row[:4]), row[4]) for row in near),
                dict(found.execute("SELECT name, value FROM counts")),
            )
    except (sqlite3.Error, UnicodeError):
        return NOTHING_PUBLISHED


def _read_only(file: Path) -> "closing[sqlite3.Connection]":
    # A turn does not do the builder's work, such as recovery or a checkpoint.
    uri = f"file:{quote(str(file))}?mode=ro"
    return closing(sqlite3.connect(uri, uri=True, timeout=READ_SECONDS, isolation_level=None))


def read_packed_symbols(file: Path, most: int) -> list[tuple[str, bytes]]:
    """The packed symbols of the files with the highest rank; nothing if the cache cannot be read now."""
    if not file.exists():
        return []
    try:
        with _read_only(file) as found:
            if found.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                return []
            return list(found.execute(SYMBOLS_QUERY, (most,)))
    except (sqlite3.Error, UnicodeError):
        return []


class CacheBroken(Exception):
    """The cache cannot be read or written."""


class MapCache:
    """The cache, opened by its only writer; a damaged one, or one of another version, is emptied."""

    def __init__(self, file: Path) -> None:
        try:
            self._connection = _open_cache(file)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", DAMAGE_CODES[0]) & 0xFF not in DAMAGE_CODES:
                raise CacheBroken(str(error)) from error
            for suffix in SUFFIXES:
                file.with_name(file.name + suffix).unlink(missing_ok=True)
            with _cache_errors():
                self._connection = _open_cache(file)

    def close(self) -> None:
        self._connection.close()

    def files(self) -> dict[str, KnownFile]:
        with _cache_errors():
            rows = self._connection.execute("SELECT path, stat, hash FROM files")
            return {path: KnownFile(*known) for path, *known in rows}

    def hashes(self) -> set[bytes]:
        """The hashes of all contents whose symbols are known."""
        with _cache_errors():
            return {row[0] for row in self._connection.execute("SELECT hash FROM symbols")}

    def keep(
        self, files: Iterable[tuple[str, KnownFile]], symbols: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """Store what was read, all or nothing."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO symbols VALUES (?, ?)", symbols)
            rows = ((path, known.stat, known.hash) for path, known in files)
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)

    def forget(self, paths: Iterable[str]) -> None:
        with self._transaction() as connection:
            connection.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))

    def symbols(self) -> Iterator[tuple[str, bytes]]:
        with _cache_errors():
            query = "SELECT path, data FROM files JOIN symbols USING (hash) ORDER BY path"
            yield from self._connection.execute(query)

    def publish(self, rows: Iterable[Ranked], counts: Mapping[str, int]) -> None:
        """Replace the rows that turns are shown; unchanged rows are not written."""
        with self._transaction() as connection:
            before = {row[0]: Ranked(*row) for row in connection.execute("SELECT * FROM ranked")}
            now = {row.path: row for row in rows}
            gone = [(path,) for path in before.keys() - now.keys()]
            connection.executemany("DELETE FROM ranked WHERE path = ?", gone)
            new = [row for path, row in now.items() if before.get(path) != row]
            connection.executemany("INSERT OR REPLACE INTO ranked VALUES (?, ?, ?, ?)", new)
            connection.executemany("INSERT OR REPLACE INTO counts VALUES (?, ?)", counts.items())

    def tidy(self, spare: int) -> None:
        """Remove contents that no file has, if there are more than `spare` of them."""
        unused = "FROM symbols WHERE hash NOT IN (SELECT hash FROM files)"
        with self._transaction() as connection:
            if connection.execute(f"SELECT count(*) {unused}").fetchone()[0] > spare:
                connection.execute(f"DELETE {unused}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _cache_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


@contextmanager
def _cache_errors() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        raise CacheBroken(str(error)) from error


def _open_cache(file: Path) -> sqlite3.Connection:
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


DIGEST_BYTES = 16


class Suspect(NamedTuple):
    digest: bytes = b""
    deaths: int = 0


class BuildMark:
    """The content that is being read, in a file that survives the process.

    `suspect` is what the last process was reading when it died, and how often that happened.
    """

    def __init__(self, cache: Path) -> None:
        name = cache.with_name(f"{cache.name}.reading")
        self._descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        data = os.pread(self._descriptor, DIGEST_BYTES + 1, 0)
        complete = len(data) > DIGEST_BYTES
        self.suspect = Suspect(data[:DIGEST_BYTES], data[DIGEST_BYTES]) if complete else Suspect()

    def set(self, digest: bytes) -> None:
        deaths = self.suspect.deaths + 1 if digest == self.suspect.digest else 1
        os.pwrite(self._descriptor, digest + bytes([min(deaths, 255)]), 0)

    def clear(self) -> None:
        os.ftruncate(self._descriptor, 0)


def lock_cache(cache: Path) -> FileLock | None:
    """The right to write the cache; None while another process has it."""
    return try_lock(cache.with_name(f"{cache.name}.lock"))
