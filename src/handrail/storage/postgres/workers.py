"""Workers and jobs in PostgreSQL: heartbeats, results, and jobs of dead workers, all by the database's clock.

DBOS keeps the queue in tables of its own (schema `dbos`). It never gives up a job of a dead worker, and loads
outputs one by one, so these statements work on its tables; the version of DBOS is pinned for that reason.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

from handrail.config.settings import without_password
from handrail.protocol.errors import StorageProblem, StorageUnreachable

if TYPE_CHECKING:
    from handrail.storage.postgres.connection import Connection

SCHEMA_LOCK, REAPER_LOCK = 7_245_001, 7_245_002
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
KEPT_DAYS = 30
"""Results that nobody has fetched are removed after so long, and dead workers are forgotten."""
MOST_OUTPUT, MOST_WORDS = 32_000_000, "32 MB"
"""Bytes of a result: many times what the largest request and answer of a model take."""
NO_VALUES: Mapping[str, Any] = MappingProxyType({})
SCHEMA: tuple[LiteralString, ...] = (
    "CREATE SCHEMA IF NOT EXISTS handrail",
    """
    CREATE TABLE IF NOT EXISTS handrail.workers (
        id text PRIMARY KEY,
        version text NOT NULL,
        queues text[] NOT NULL,
        model text NOT NULL,
        parallel integer NOT NULL,
        lost_after double precision NOT NULL,
        running integer NOT NULL,
        beat timestamptz NOT NULL DEFAULT clock_timestamp()
    )""",
)
NOW_MS: LiteralString = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
BACK_ON_QUEUE: LiteralString = f"""
    UPDATE dbos.workflow_status AS job
    SET status = 'ENQUEUED', owner_xid = NULL, started_at_epoch_ms = NULL, updated_at = {NOW_MS}
    """
DELETE_FROM: tuple[LiteralString, ...] = (
    "DELETE FROM dbos.workflow_input WHERE workflow_uuid = ANY(%(ids)s)",
    "DELETE FROM dbos.workflow_output WHERE workflow_uuid = ANY(%(ids)s)",
    "DELETE FROM dbos.operation_outputs WHERE workflow_uuid = ANY(%(ids)s)",
    "DELETE FROM dbos.workflow_status WHERE workflow_uuid = ANY(%(ids)s)",
)


class WorkerRow(NamedTuple):
    id: str
    """The name under which it takes jobs; a process that starts again has a new one."""
    version: str
    queues: tuple[str, ...]
    model: str
    parallel: int
    lost_after: float
    """Seconds of silence after which it is taken for dead."""
    running: int = 0


class JobRow(NamedTuple):
    id: str
    ended: bool
    worker: str
    """Who has it, or had it last; empty: nobody yet."""
    output: str | None
    problem: str
    """Why it ended without an output that can be used."""


class JobTables:
    """One connection to the tables, opened again after it broke. For one thread at a time."""

    def __init__(self, url: str, job_name: str) -> None:
        """`job_name`: the name of the DBOS workflow; others in the same database are left alone."""
        self._url = url
        self._place = without_password(url)
        self._job_name = job_name
        self._connection: Connection | None = None

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def create(self) -> None:
        """Create what is missing; raises StorageProblem where the database cannot be used."""
        with self._transaction() as run:
            run("SELECT pg_advisory_xact_lock(%(key)s)", {"key": SCHEMA_LOCK})
            for statement in SCHEMA:
                run(statement)

    # Workers

    def beat(self, worker: WorkerRow) -> None:
        """Say that this worker lives."""
        with self._transaction() as run:
            run(
                """
                INSERT INTO handrail.workers (id, version, queues, model, parallel, lost_after, running)
                VALUES (%(id)s, %(version)s, %(queues)s, %(model)s, %(parallel)s, %(lost_after)s, %(running)s)
                ON CONFLICT (id) DO UPDATE SET running = excluded.running, beat = clock_timestamp()""",
                worker._asdict() | {"queues": list(worker.queues)},
            )

    def leave(self, worker_id: str) -> int:
        """Give back all jobs of this worker, and forget it; returns how many jobs went back."""
        with self._transaction() as run:
            values = {"worker": worker_id, "name": self._job_name}
            given = run(
                BACK_ON_QUEUE
                + "WHERE executor_id = %(worker)s AND status = 'PENDING' AND name = %(name)s RETURNING 1",
                values,
            )
            run("DELETE FROM handrail.workers WHERE id = %(worker)s", values)
            return len(given)

    def living(self, queue: str) -> list[WorkerRow]:
        """Workers that take jobs of the queue."""
        with self._transaction() as run:
            rows = run(
                """
                SELECT id, version, queues, model, parallel, lost_after, running FROM handrail.workers
                WHERE %(queue)s = ANY(queues)
                AND beat > clock_timestamp() - make_interval(secs => lost_after)
                ORDER BY id""",
                {"queue": queue},
            )
        return [WorkerRow(*row)._replace(queues=tuple(row[2])) for row in rows]

    def reap(self) -> list[str]:
        """Put jobs of workers that were silent for too long back on the queue; one process at a time does."""
        with self._transaction() as run:
            if not run("SELECT pg_try_advisory_xact_lock(%(key)s)", {"key": REAPER_LOCK})[0][0]:
                return []
            values = {"name": self._job_name, "days": KEPT_DAYS}
            lost = run(
                BACK_ON_QUEUE
                + """
                WHERE status = 'PENDING' AND name = %(name)s AND NOT EXISTS (
                    SELECT 1 FROM handrail.workers AS worker
                    WHERE worker.id = job.executor_id
                    AND worker.beat > clock_timestamp() - make_interval(secs => worker.lost_after))
                RETURNING workflow_uuid""",
                values,
            )
            run(
                "DELETE FROM handrail.workers WHERE beat < now() - make_interval(days => %(days)s)",
                values,
            )
            old = run(
                f"""
                SELECT workflow_uuid FROM dbos.workflow_status WHERE name = %(name)s
                AND completed_at < {NOW_MS} - %(days)s * 86400000::bigint LIMIT 1000""",
                values,
            )
            if old:
                _delete(run, [row[0] for row in old])
        return [row[0] for row in lost]

    # Jobs

    def look(self, ids: Collection[str]) -> list[JobRow]:
        """The jobs with these ids that are in the database, with the outputs of those that have ended."""
        with self._transaction() as run:
            rows = run(
                """
                SELECT job.workflow_uuid, job.status, left(coalesce(job.executor_id, ''), 200),
                CASE WHEN octet_length(step.output) <= %(most)s THEN step.output END,
                CASE WHEN octet_length(step.output) > %(most)s THEN 'it is larger than ' || %(words)s
                ELSE left(coalesce(ended.error, lower(job.status)), 1000) END
                FROM dbos.workflow_status AS job
                LEFT JOIN dbos.workflow_output AS ended ON ended.workflow_uuid = job.workflow_uuid
                LEFT JOIN dbos.operation_outputs AS step
                ON step.workflow_uuid = job.workflow_uuid
                AND step.error IS NULL AND job.status = ANY(%(ended)s)
                WHERE job.workflow_uuid = ANY(%(ids)s)""",
                {"ids": list(ids), "ended": list(ENDED), "most": MOST_OUTPUT, "words": MOST_WORDS},
            )
        return [
            JobRow(name, status in ENDED, worker, output, "" if output is not None else problem)
            for name, status, worker, output, problem in rows
        ]

    def held(self, worker_id: str) -> set[str]:
        """The jobs that count as running at this worker."""
        with self._transaction() as run:
            rows = run(
                """
                SELECT workflow_uuid FROM dbos.workflow_status
                WHERE executor_id = %(worker)s AND status = 'PENDING' AND name = %(name)s""",
                {"worker": worker_id, "name": self._job_name},
            )
        return {row[0] for row in rows}

    def put_back(self, worker_id: str, ids: Collection[str]) -> None:
        """Put these jobs of the worker back on the queue."""
        with self._transaction() as run:
            run(
                BACK_ON_QUEUE
                + "WHERE workflow_uuid = ANY(%(ids)s) AND executor_id = %(worker)s AND status = 'PENDING'",
                {"ids": list(ids), "worker": worker_id},
            )

    def delete(self, ids: Sequence[str]) -> set[str]:
        """Remove jobs with all that belongs to them; returns those that a worker had taken."""
        with self._transaction() as run:
            begun = run(
                """
                SELECT workflow_uuid FROM dbos.workflow_status
                WHERE workflow_uuid = ANY(%(ids)s) AND started_at_epoch_ms IS NOT NULL FOR UPDATE""",
                {"ids": list(ids)},
            )
            _delete(run, ids)
        return {row[0] for row in begun}

    @contextmanager
    def _transaction(self) -> "Iterator[_Run]":
        import psycopg

        from handrail.storage.postgres.connection import open_connection
        from handrail.storage.postgres.errors import storage_problem

        if self._connection is None or self._connection.closed:
            self._connection = open_connection(self._url, self._place)
        try:
            with self._connection.transaction():
                yield _Run(self._connection)
        except psycopg.Error as error:
            self.close()
            raise storage_problem(error, self._place) from error


class _Run:
    """Runs one statement and returns its rows, if it has any."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    def __call__(
        self, statement: LiteralString, values: Mapping[str, Any] = NO_VALUES
    ) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def _delete(run: _Run, ids: Sequence[str]) -> None:
    for statement in DELETE_FROM:
        run(statement, {"ids": list(ids)})


def url_parts(url: str) -> dict[str, str]:
    """What a database's URL says, as libpq reads it."""
    from psycopg.conninfo import conninfo_to_dict

    return {name: str(value) for name, value in conninfo_to_dict(url).items()}


def queue_problem(error: Exception, url: str) -> StorageProblem:
    """Our error for one that DBOS lets through: it has psycopg's inside."""
    from psycopg import Error

    from handrail.storage.postgres.errors import storage_problem

    place, inner = without_password(url), getattr(error, "orig", None)
    if isinstance(inner, Error):
        return storage_problem(inner, place)
    return StorageUnreachable(f"The database {place} does not answer ({type(error).__name__}). Try again.")
