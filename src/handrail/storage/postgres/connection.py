"""A connection to PostgreSQL on which every wait has a deadline."""

from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import OperationalError
from psycopg.types.string import BytesBinaryDumper, StrBinaryDumper

from handrail.protocol.errors import StorageProblem
from handrail.storage.log_database import ExactText
from handrail.storage.postgres.errors import connect_problem, storage_problem
from handrail.storage.postgres.tables import channel_name

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10
ANSWER_SECONDS = STATEMENT_SECONDS + 2.0
"""The server itself ends a statement before that; a server or a network that hangs does not."""
OLDEST_SERVER = 130_000
KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
Found = TypeVar("Found")


class NoAnswer(OperationalError):
    """The server took longer than any statement may."""


class ExactTextDumper(BytesBinaryDumper):
    def dump(self, obj: Any) -> bytes:
        return str(obj).encode("utf-8", "surrogatepass")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    backend_pid = 0
    backend_start: Any = None
    """With the process number, what tells a connection from all others, also after it is closed."""

    def wait(self, gen: PQGen[Found], interval: float = 0.1, timeout: float | None = None) -> Found:
        try:
            return super().wait(gen, interval, timeout or ANSWER_SECONDS)
        except psycopg.errors._WaitTimeout as late:
            self.pgconn.finish()  # its answer must not be taken for that of the next statement
            raise NoAnswer(f"no answer for {ANSWER_SECONDS:.0f} s") from late

    def run(self, statements: str) -> "psycopg.Cursor[tuple[Any, ...]]":
        """Several statements without values, in one round trip; returns the cursor of the first."""
        return self.execute(statements, prepare=False)


def connect(url: str, place: str, *, schema: str, tree: str) -> Connection:
    """A connection in autocommit mode, with deadlines, that gets notices of commits; raises our errors."""
    connection = open_connection(url, place)
    try:
        _set_up(connection, place, schema, tree)
    except psycopg.Error as error:
        connection.close()
        raise storage_problem(error, place) from error
    except BaseException:
        connection.close()
        raise
    return connection


def open_connection(url: str, place: str) -> Connection:
    """A connection in autocommit mode, with deadlines; raises our errors."""
    try:
        return Connection.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="handrail",
            client_encoding="utf8",
            **KEEPALIVE,
        )
    except psycopg.Error as error:
        # Its traceback holds the attempt in a cycle, so the socket would stay open until the next collection;
        # a server that was hanging may wait a minute for it, and answers nobody meanwhile.
        raise connect_problem(error, place) from error.with_traceback(None)


def _set_up(connection: Connection, place: str, schema: str, tree: str) -> None:
    connection.adapters.register_dumper(bytes, BytesBinaryDumper)
    connection.adapters.register_dumper(ExactText, ExactTextDumper)
    connection.adapters.register_dumper(str, StrBinaryDumper)
    if connection.info.server_version < OLDEST_SERVER:
        raise StorageProblem(f"The server of {place} is older than PostgreSQL 13. Use a newer one.")
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise StorageProblem(f"The database {place} is not in UTF-8. Make one with ENCODING 'UTF8'.")
    # The server notices within half a minute that this machine has vanished, and releases its locks.
    connection.run(
        f"SET search_path TO {schema}; SET statement_timeout TO '{STATEMENT_SECONDS}s';"
        f"SET lock_timeout TO '{STATEMENT_SECONDS}s';"
        "SET idle_in_transaction_session_timeout TO '15s';"
        "SET tcp_keepalives_idle TO 10; SET tcp_keepalives_interval TO 5; SET tcp_keepalives_count TO 3;"
        f"LISTEN {channel_name(schema)};"
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.backend_pid = connection.info.backend_pid
    found = connection.execute(
        "SELECT backend_start, set_config('handrail.tree', %s, false) FROM pg_stat_activity"
        " WHERE pid = pg_backend_pid()",
        (tree,),
    )
    [(connection.backend_start, _)] = found.fetchall()
