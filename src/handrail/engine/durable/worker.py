"""A worker: takes jobs from the queue, lets a model answer them, and leaves without losing one.

DBOS claims jobs and records their results in threads of its own. Everything else happens in the event loop
here: the model is asked, the heartbeat is sent, and jobs of dead workers go back on the queue.
"""

import os
import secrets
import socket
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import anyio
from anyio.from_thread import BlockingPortal
from anyio.to_thread import run_sync
from msgspec.json import Decoder, encode

from handrail.engine.durable.jobs import Job, JobResult, Perform
from handrail.engine.durable.queue import (
    APPLICATION,
    LOST_AFTER,
    POLL_SECONDS,
    WORKFLOW,
    dbos_url,
    job_version,
    prepare_dbos,
)
from handrail.protocol.errors import HandrailError, StorageProblem
from handrail.storage.postgres.workers import JobTables, WorkerRow, queue_problem

if TYPE_CHECKING:
    from dbos import DBOS

JOB = Decoder(Job)
GONE, IDLE_SECONDS = "", 0.1
MOST_TRIES = 20
"""How often a job begins again after its worker died: one that kills workers must not kill all of them."""
Found = TypeVar("Found")
NewsKind = Literal["began", "done", "failed", "returned", "unreachable", "reachable"]


class WorkerNews(NamedTuple):
    """What a worker has to tell: about a job, or about its database."""

    kind: NewsKind
    job: str = ""
    result: JobResult | None = None
    seconds: float = 0.0
    detail: str = ""


class WorkerSettings(NamedTuple):
    url: str
    queues: tuple[str, ...]
    model: str
    """For others to see."""
    parallel: int = 1
    lost_after: float = LOST_AFTER
    grace: float = 20.0
    """Seconds that jobs may take to end when the worker is stopped."""


class JobGone(BaseException):
    """The job is not this worker's any longer. No `Exception`: DBOS would record it, and wait for others."""


def worker_name() -> str:
    """A name that no other process has, and that tells people where it runs."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class Worker:
    """Runs jobs until it is stopped, or until `perform` raises; then its jobs go back to the queue."""

    def __init__(
        self, settings: WorkerSettings, perform: Perform, tell: Callable[[WorkerNews], None]
    ) -> None:
        self.name = worker_name()
        self._settings = settings
        self._perform = perform
        self._tell = tell
        self._tables = JobTables(settings.url, WORKFLOW)
        self._running: dict[str, anyio.CancelScope] = {}
        self._stop = anyio.Event()
        self._database = anyio.Lock()
        self._problem: HandrailError | OSError | None = None
        self._reachable = True
        self._unknown: dict[str, float] = {}
        """{job that counts as running here, but does not: since when}"""

    def stop(self) -> None:
        """End what runs, within the grace, and take nothing more; a second call ends it at once."""
        if self._stop.is_set():
            self._settings = self._settings._replace(grace=0.0)
        self._stop.set()

    async def run(self, started: Callable[[], None]) -> None:
        """Raises StorageProblem where the database cannot be used at the start; and what `perform` raised."""
        await run_sync(self._tables.create)
        await run_sync(self._tables.beat, self._row())
        try:
            async with BlockingPortal() as portal:
                try:
                    async with anyio.create_task_group() as tasks:
                        dbos = await run_sync(self._launch, portal)
                        started()
                        tasks.start_soon(self._keep_beating)
                        await self._stop.wait()
                        for event in dbos.background_thread_stop_events:
                            event.set()  # no more jobs are claimed
                        await self._until_idle()
                        tasks.cancel_scope.cancel()
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._leave()
        finally:
            self._tables.close()
        if self._problem:
            raise self._problem

    async def _leave(self) -> None:
        """Give the jobs back, then end those that ran: nothing that still comes of them is taken."""
        with suppress(StorageProblem):  # the reaper does it
            returned = await self._in_database(self._tables.leave, self.name)
            if returned:
                self._news(WorkerNews("returned", detail=str(returned)))
        for scope in self._running.values():
            scope.cancel()
        await run_sync(self._end_dbos)

    def _news(self, news: WorkerNews) -> None:
        """Tell what happened. A worker that can tell nobody, as on a full disk, takes no more jobs."""
        try:
            self._tell(news)
        except OSError as error:
            self._problem = self._problem or error
            self._stop.set()

    def _row(self) -> WorkerRow:
        settings = self._settings
        return WorkerRow(
            self.name,
            job_version(),
            settings.queues,
            settings.model,
            settings.parallel,
            settings.lost_after,
            len(self._running),
        )

    async def _until_idle(self) -> None:
        """Wait until all jobs have ended, and DBOS has recorded it; at most as long as the grace allows."""
        deadline = time.monotonic() + self._settings.grace
        with suppress(StorageProblem):
            while self._problem is None and time.monotonic() < deadline:
                if not self._running and not await self._in_database(self._tables.held, self.name):
                    return
                deadline = min(deadline, time.monotonic() + self._settings.grace)
                await anyio.sleep(IDLE_SECONDS)

    async def _in_database(self, call: Callable[..., Found], *values: str) -> Found:
        """What the call returns, in a thread; one at a time."""
        async with self._database:
            return await run_sync(call, *values)

    # Jobs

    def _launch(self, portal: BlockingPortal) -> "DBOS":
        """Start DBOS; from now on it claims jobs and calls `_ask` for each."""
        from dbos import DBOS
        from dbos._serialization import DBOSPortableJSON
        from sqlalchemy.exc import SQLAlchemyError

        prepare_dbos()
        settings = self._settings
        dbos = DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": dbos_url(settings.url),
                "application_version": job_version(),
                "executor_id": self.name,
                "serializer": DBOSPortableJSON,
                "log_level": "CRITICAL",
                "use_listen_notify": True,
                "enable_otlp": False,
            }
        )

        @DBOS.step(name="ask")
        def ask(text: str) -> str:
            name = str(DBOS.workflow_id)
            try:
                answer = portal.call(self._ask, name, text)
            except (CancelledError, RuntimeError):
                if not self._stop.is_set():
                    raise
                answer = GONE
            if answer == GONE:
                raise JobGone(name)
            return answer

        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=MOST_TRIES)
        def perform(text: str) -> str:
            ask(text)
            return ""  # the step's output is the result

        DBOS.listen_queues(list(settings.queues))
        _limit_claims(settings.parallel)
        try:
            DBOS.launch()
            for queue in settings.queues:
                DBOS.register_queue(queue, polling_interval_sec=POLL_SECONDS, on_conflict="always_update")
        except SQLAlchemyError as error:
            raise queue_problem(error, settings.url) from error
        return dbos

    async def _ask(self, name: str, text: str) -> str:
        began = time.monotonic()
        job = JOB.decode(text)
        self._news(WorkerNews("began", name))
        scope = self._running[name] = anyio.CancelScope()
        result: JobResult | None = None
        try:
            with scope:
                try:
                    result = await self._perform(job)
                except HandrailError as problem:
                    self._problem = self._problem or problem
                    self._stop.set()
                    await anyio.sleep_forever()  # until this job has gone back to the queue
        finally:
            del self._running[name]
        if result is None:
            return GONE
        kind: NewsKind = "failed" if result.problem else "done"
        self._news(WorkerNews(kind, name, result, time.monotonic() - began))
        return encode(result).decode()

    # The database

    async def _keep_beating(self) -> None:
        pause = min(5.0, self._settings.lost_after / 5)
        while True:
            try:
                gone = await self._in_database(self._beat)
            except StorageProblem as problem:
                self._told(reachable=False, detail=str(problem))
            else:
                self._told(reachable=True)
                for name in gone:
                    if scope := self._running.get(name):
                        scope.cancel()
            await anyio.sleep(pause)

    def _beat(self) -> set[str]:
        """Say that this worker lives, and look after those that do not; returns jobs that it has lost."""
        tables, now = self._tables, time.monotonic()
        tables.beat(self._row())
        tables.reap()
        running = set(self._running)
        held = tables.held(self.name)
        # Claimed, but the connection was cut before this process knew it: nobody else would take them.
        self._unknown = {name: self._unknown.get(name, now) for name in held - running}
        if lost := [name for name, since in self._unknown.items() if now - since > self._settings.lost_after]:
            tables.put_back(self.name, lost)
        return running - held

    def _told(self, *, reachable: bool, detail: str = "") -> None:
        if reachable != self._reachable:
            self._reachable = reachable
            self._news(WorkerNews("reachable" if reachable else "unreachable", detail=detail))

    def _end_dbos(self) -> None:
        from dbos import DBOS

        DBOS.destroy(destroy_registry=True)


def _limit_claims(parallel: int) -> None:
    """Let this process claim so many jobs at once. DBOS keeps one number with the queue, for all workers."""
    from dbos._sys_db import SystemDatabase

    tables: Any = SystemDatabase
    read = tables.get_queue

    def with_own_limit(self: Any, name: str, **options: Any) -> Any:
        queue = read(self, name, **options)
        if queue is not None:
            queue._worker_concurrency = parallel
        return queue

    tables.get_queue = with_own_limit
