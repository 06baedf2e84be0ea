"""The log in a schema of a PostgreSQL database, shared by any number of machines.

One connection has everything: statements, notices of commits, and the locks of the streams that this process
holds, which so end with it. A lost connection is made again by the next call; a transaction whose end was not
heard is looked up by its number, so that what was stored is known.
"""

import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from handrail.config.files import write_atomically
from handrail.config.settings import DatabaseSettings, without_password
from handrail.protocol.errors import StorageProblem, StorageUnreachable
from handrail.protocol.ids import new_id
from handrail.storage.postgres.connection import Connection, NoAnswer, connect, open_connection
from handrail.storage.postgres.errors import storage_problem
from handrail.storage.postgres.tables import VERSION, channel_name, lock_key, migration, schema_name

RECONNECT_SECONDS = 5.0
"""For so long a call waits for a server that restarts."""
PROBE_SECONDS = 1.0
"""After that, calls fail at once until a thread, which tries so often, has reached the server: one that is
away must not stop everything else."""
OUTCOME_SECONDS = 10.0
POLL_SECONDS = 0.05
TREE_FILE = "tree"


class Place(NamedTuple):
    """Which log it is, and whose files its sessions change here."""

    url: str
    workspace: str
    named: bool
    """Whether the user gave the workspace its name."""
    root: Path
    folder: Path
    """What belongs to this machine, and to this copy of the workspace."""


def place_of(settings: DatabaseSettings, root: Path, folder: Path) -> Place:
    return Place(settings.url, settings.name_of(root), bool(settings.workspace), root, folder)


class PostgresDatabase:
    """A `LogDatabase` in PostgreSQL."""

    own = "own_"
    repair = "Somebody changed it in the database. Restore that from a backup, or start a new session."

    def __init__(self, place: Place) -> None:
        self._at = place
        self._schema = schema_name(place.workspace)
        self._channel = channel_name(self._schema)
        self._tree = _tree_id(place.folder)
        self.place = f"{without_password(place.url)}, workspace {place.workspace}"
        self.notices: list[str] = []
        self._version = 0
        self._held: set[str] = set()
        self._in_transaction = False
        self._away = False
        self._closed = False
        self._connection = self._connect()
        try:
            self._migrate()
            self._register_tree()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._closed = True
        self._connection.close()

    def another(self) -> "PostgresDatabase":
        return PostgresDatabase(self._at)

    # Statements

    def rows(self, query: str, values: Sequence[Any] = (), /) -> list[Any]:
        if self._in_transaction:
            with self._errors():
                return self._run(query, values).fetchall()
        connection = self._live()
        with self._errors():
            try:
                return self._run(query, values).fetchall()
            except psycopg.OperationalError as error:
                if isinstance(error, NoAnswer) or not connection.closed:
                    raise
        self._live()  # it was lost since the last call
        with self._errors():
            return self._run(query, values).fetchall()

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> int:
        with self._errors():
            return self._run(statement, values).rowcount

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> None:
        if rows := list(values):
            with self._errors(), self._connection.cursor() as cursor:
                cursor.executemany(_translated(statement), rows)

    def _run(self, statement: str, values: Sequence[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.execute(_translated(statement), tuple(values), binary=True)

    @contextmanager
    def transaction(self, stream: str = "", /) -> Iterator[None]:
        number = self._begin(stream)
        self._in_transaction = True
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error):
                self._connection.run("ROLLBACK")
            raise
        finally:
            self._in_transaction = False
        try:
            ended = self._connection.run("COMMIT").statusmessage
        except psycopg.OperationalError as error:
            if not self._connection.closed:
                raise storage_problem(error, self.place) from error
            if not self._was_committed(number):
                raise storage_problem(error, self.place) from error
        except psycopg.Error as error:
            raise storage_problem(error, self.place) from error
        else:
            if ended != "COMMIT":
                raise StorageProblem(f"{self.place} did not store a change that had failed before.")

    def _begin(self, stream: str) -> str:
        """Begin a transaction that others are told of; returns its number."""
        lock = lock_key(self._schema, "append", stream)
        waits = f"; SELECT pg_advisory_xact_lock({lock})" if stream else ""
        statements = f"BEGIN; SELECT pg_current_xact_id()::text; NOTIFY {self._channel}{waits}"
        connection = self._live()
        with self._errors():
            try:
                return self._number(connection.run(statements))
            except psycopg.OperationalError as error:
                if not connection.closed:
                    connection.run("ROLLBACK")
                    raise
                if isinstance(error, NoAnswer):
                    raise
        connection = self._live()  # it was lost since the last call
        with self._errors():
            return self._number(connection.run(statements))

    @staticmethod
    def _number(cursor: psycopg.Cursor[tuple[Any, ...]]) -> str:
        cursor.nextset()
        [(number,)] = cursor.fetchall()
        return str(number)

    def _was_committed(self, number: str) -> bool:
        """Whether the transaction whose connection was lost at its end is stored."""
        deadline = time.monotonic() + OUTCOME_SECONDS
        while time.monotonic() < deadline:
            with suppress(StorageUnreachable):
                [(status,)] = self.rows("SELECT pg_xact_status(?::text::xid8)", (number,))
                if status != "in progress":
                    return bool(status == "committed")
            time.sleep(POLL_SECONDS)
        raise StorageUnreachable(
            f"The connection to {self.place} was lost while it stored something. Whether that is stored is "
            "not known. Look before you repeat it."
        )

    # Connections

    def _live(self) -> Connection:
        """The connection, made again if it was lost."""
        if not self._connection.closed:
            return self._connection
        if self._away:
            raise StorageUnreachable(f"The database {self.place} does not answer. Try again when it does.")
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                self._reconnect()
            except StorageUnreachable:
                if time.monotonic() > deadline:
                    self._fail_until_it_answers()
                    raise
                time.sleep(POLL_SECONDS)
            else:
                return self._connection

    def _fail_until_it_answers(self) -> None:
        self._away = True

        def probe() -> None:
            while self._away and not self._closed:
                time.sleep(PROBE_SECONDS)
                try:
                    open_connection(self._at.url, self.place).close()
                except StorageUnreachable:
                    continue
                except StorageProblem:
                    pass  # the next call says what is wrong now
                self._away = False

        threading.Thread(target=probe, daemon=True).start()

    def _reconnect(self) -> None:
        if self._closed:
            raise StorageProblem(f"The log in {self.place} is closed.")
        lost = self._connection
        lost.close()
        self._connection = self._connect()
        self._version += 1  # what was committed meanwhile was not heard of
        deadline = time.monotonic() + OUTCOME_SECONDS
        with self._errors():
            # The server may not know yet that the old connection is gone: it would keep our locks.
            while self._run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ? AND backend_start = ?",
                (lost.backend_pid, lost.backend_start),
            ).fetchall():
                if time.monotonic() > deadline:
                    break
                time.sleep(POLL_SECONDS)
            for name in self._held:  # if another process was quicker, its epoch ends our hold
                self._run("SELECT pg_try_advisory_lock(?)", (self._hold_key(name),))

    def _connect(self) -> Connection:
        connection = connect(self._at.url, self.place, schema=self._schema, tree=self._tree)
        connection.add_notify_handler(self._noticed)
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise storage_problem(error, self.place) from error

    # Notices and locks

    def _noticed(self, notice: psycopg.Notify) -> None:
        if notice.pid != self._connection.backend_pid:
            self._version += 1

    def data_version(self) -> int:
        connection = self._connection
        if connection.closed:
            if not self._closed and not self._away:
                try:
                    self._reconnect()
                except StorageProblem:
                    self._fail_until_it_answers()
            return self._version
        if not connection.lock.acquire(blocking=False):
            return self._version  # another thread waits for an answer, which must not be read here
        try:
            connection.pgconn.consume_input()
            while notice := connection.pgconn.notifies():
                self._version += notice.be_pid != connection.backend_pid
        except psycopg.OperationalError:
            connection.close()
        finally:
            connection.lock.release()
        return self._version

    def try_hold(self, name: str, /) -> "HeldLock | None":
        if name in self._held or not self._take(name):
            return None
        self._held.add(name)
        return HeldLock(self, name)

    def _take(self, name: str) -> bool:
        return bool(self.rows("SELECT pg_try_advisory_lock(?)", (self._hold_key(name),))[0][0])

    def is_held(self, name: str, /) -> bool:
        if name in self._held:
            return True
        found = self.rows(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND (classid::bigint << 32) | objid::bigint = ?",
            (self._hold_key(name),),
        )
        return bool(found)

    def release(self, name: str) -> None:
        """Release a name. A lost connection has released it already."""
        self._held.discard(name)
        if not self._connection.closed:
            with suppress(psycopg.Error):
                self._run("SELECT pg_advisory_unlock(?)", (self._hold_key(name),))

    def _hold_key(self, name: str) -> int:
        return lock_key(self._schema, "hold", name)

    # What is there

    def stored_bytes(self) -> int:
        [(size,)] = self.rows(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = to_regnamespace(?)",
            (self._schema,),
        )
        return int(size)

    def used_bytes(self) -> int:
        """The contents alone: they are what can be pruned, and others may use the same database."""
        [(size,)] = self.rows("SELECT coalesce(sum(length(data)), 0)::bigint FROM blobs")
        return int(size)

    def unsettled_elsewhere(self, stream: str, /) -> list[tuple[str, str]]:
        found = self.rows(
            "SELECT j.change, t.host, t.folder FROM journal j LEFT JOIN trees t USING (tree)"
            " WHERE j.stream = ? AND j.outcome = '' AND j.tree <> ? ORDER BY j.change",
            (stream, self._tree),
        )
        return [
            (change, f"{os.fsdecode(folder)} on {host}" if folder else "another machine")
            for change, host, folder in found
        ]

    def structural_problems(self) -> list[str]:
        return []

    def mark_damaged(self) -> None:
        """Nothing: no start can repair a server's database."""

    # Opening

    def _migrate(self) -> None:
        stored = self._stored_version()
        if stored < VERSION:
            # Whoever comes first; the others wait before their transaction: it would not see the tables.
            key = lock_key(self._schema, "migrate")
            self.rows("SELECT pg_advisory_lock(?)", (key,))
            with self.transaction():
                stored = self._stored_version()
                if stored < VERSION:
                    with self._errors():
                        self._connection.run(migration(self._schema, stored))
            self.rows("SELECT pg_advisory_unlock(?)", (key,))
        if stored > VERSION:
            raise StorageProblem(
                f"{self.place} was written by a newer Handrail (format {stored}). Upgrade Handrail."
            )

    def _stored_version(self) -> int:
        """The version of the schema; 0 if there is none."""
        [(table,)] = self.rows("SELECT to_regclass(?)::text", (f"{self._schema}.handrail",))
        return int(self.rows("SELECT version FROM handrail")[0][0]) if table else 0

    def _register_tree(self) -> None:
        """Put this folder on record. Two folders of one machine share a log only on purpose."""
        host, folder = socket.gethostname(), os.fsencode(self._at.root)
        known = self.rows("SELECT tree, host, folder FROM trees")
        if (self._tree, host, folder) in known:
            return
        others = [os.fsdecode(other) for _, where, other in known if where == host and other != folder]
        if others and not self._at.named:
            raise StorageProblem(
                f"The workspace {self._at.workspace} of this database belongs to {others[0]}, another folder "
                "of the same name. Give this one a name of its own with HANDRAIL_DATABASE_WORKSPACE=NAME, or "
                "with database.workspace in its .handrail/config.toml and `handrail trust`. With the name "
                f"{self._at.workspace}, both have the same sessions."
            )
        with self.transaction():
            self.execute(
                "INSERT INTO trees VALUES (?, ?, ?) ON CONFLICT (tree) DO UPDATE SET host = excluded.host,"
                " folder = excluded.folder",
                (self._tree, host, folder),
            )


class HeldLock(NamedTuple):
    """A name that this process holds."""

    database: PostgresDatabase
    name: str

    def release(self) -> None:
        self.database.release(self.name)


@lru_cache(maxsize=256)
def _translated(statement: str) -> str:
    return statement.replace("?", "%s")


def _tree_id(folder: Path) -> str:
    """What the files of this machine are called in the log; kept in the folder that belongs to them."""
    file = folder / TREE_FILE
    if not file.exists():
        with suppress(FileExistsError):
            write_atomically(file, new_id("t").encode(), overwrite=False)
    return file.read_text("utf-8")
