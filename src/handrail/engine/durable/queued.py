"""Jobs on other machines: the runner that queues them in PostgreSQL and fetches what workers made of them."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from shlex import quote

import anyio
from anyio.to_thread import run_sync
from msgspec import DecodeError, ValidationError
from msgspec.json import Decoder
from msgspec.structs import astuple, replace

from handrail.engine.durable.jobs import Job, JobResult
from handrail.engine.durable.queue import POLL_SECONDS, JobQueue, job_version
from handrail.protocol.errors import StorageProblem
from handrail.storage.postgres.workers import JobRow, WorkerRow

RESULT = Decoder(JobResult)
WORKERS_SECONDS = 2.0
"""Between two looks at which workers live, and at what dead ones have left."""
RETRY_SECONDS = 1.0
"""After the database could not be reached."""
MOST = 1e12
"""No number in a result is larger."""


class QueuedJobs:
    """A `JobRunner` whose jobs run on workers. One loop makes all statements, for all open jobs together."""

    def __init__(self, queue: JobQueue, notify: Callable[[], None]) -> None:
        self._queue = queue
        self._notify = notify
        self._open: dict[str, Job] = {}
        """Those that have no result yet, by their names."""
        self._unsent: dict[str, Job] = {}
        self._withdrawn: set[str] = set()
        self._results: list[tuple[str, JobResult]] = []
        self._given: set[str] = set()
        """Results that were handed out last. The conductor records them before it asks for more."""
        self._taken: set[str] = set()
        """Results that are recorded: the database need not keep them."""
        self._stalled = ""
        self._looked_at = 0.0
        self.workers: dict[str, str] = {}
        """{key of a job: the worker that has it}"""
        self.begun_and_cancelled: list[str] = []
        """Keys of cancelled jobs that a worker had begun: what they cost is not known."""
        self._work = anyio.Event()

    async def submit(self, job: Job) -> None:
        if job.name not in self._open:
            if job.name in self._given:  # it was of no use, as when a provider is busy
                self._given.remove(job.name)
                self._taken.add(job.name)
            self._open[job.name] = self._unsent[job.name] = job
            self._work.set()

    async def cancel(self, key: str) -> None:
        for name, job in list(self._open.items()):
            if job.key == key:
                del self._open[name]
                self.workers.pop(key, None)
                if self._unsent.pop(name, None) is None:
                    self._withdrawn.add(name)
                self._work.set()

    def results(self) -> list[JobResult]:
        self._taken |= self._given
        found, self._results = self._results, []
        self._given = {name for name, _ in found}
        return [result for _, result in found]

    def stalled(self) -> str:
        return self._stalled

    async def run(self) -> None:
        """Bring the database and this runner together, until cancelled."""
        while True:
            self._work, before = anyio.Event(), self._stalled
            try:
                await run_sync(self._step)
                wait = POLL_SECONDS if self._open else None
            except StorageProblem as problem:
                self._stalled = f"{problem} The split goes on when it can be reached again."
                self._looked_at, wait = 0.0, RETRY_SECONDS
            if self._results or self.begun_and_cancelled or self._stalled != before:
                self._notify()
            with anyio.move_on_after(wait):
                await self._work.wait()

    def _step(self) -> None:
        tables = self._queue.tables
        if gone := list(self._withdrawn | self._taken):
            begun = tables.delete(gone)
            self.begun_and_cancelled += [name.partition("/")[2] for name in self._withdrawn & begun]
            self._withdrawn.difference_update(gone)
            self._taken.difference_update(gone)
        for name, job in list(self._unsent.items()):
            self._queue.put(job)
            self._unsent.pop(name, None)
        if not self._open:
            self._stalled = ""
            return
        rows = {row.id: row for row in tables.look(list(self._open))}
        for name, job in list(self._open.items()):
            row = rows.get(name)
            if name in self._unsent:
                continue
            if row is None:  # somebody has emptied the queue
                self._unsent[name] = job
            elif row.ended:
                if self._open.pop(name, None) is None:
                    continue  # cancelled meanwhile
                self.workers.pop(job.key, None)
                self._results.append((name, _result(job, row)))
            elif row.worker:
                self.workers[job.key] = row.worker
        if time.monotonic() >= self._looked_at + WORKERS_SECONDS:
            tables.reap()
            self._stalled = _why_stalled(self._queue, tables.living(self._queue.name))
            self._looked_at = time.monotonic()

    def close(self) -> None:
        """Remove what is recorded, and jobs that were cancelled last."""
        with suppress(StorageProblem):  # whoever goes on with the split, or the reaper, removes it later
            if gone := [*self._taken, *self._given, *self._withdrawn]:
                self._queue.tables.delete(gone)


def _result(job: Job, row: JobRow) -> JobResult:
    if row.output is None:
        attempts = " Workers ended too often while they had it." if "recovery" in row.problem else ""
        problem = f"The worker {row.worker or 'that had it'} gave no result ({row.problem}).{attempts}"
        return JobResult(job.key, problem=problem, again=True, worker=row.worker)
    try:
        # The step's output is JSON text inside JSON.
        result = RESULT.decode(Decoder(str).decode(row.output))
        _check_counts(result)
    except (DecodeError, ValidationError) as error:
        problem = f"The worker {row.worker} sent a result that cannot be read: {error}."
        return JobResult(job.key, problem=problem, again=True, worker=row.worker)
    return replace(result, key=job.key, worker=row.worker)


def _check_counts(result: JobResult) -> None:
    """Raises ValidationError for a number that would spoil a sum: a negative one would add to a budget."""
    numbers: list[float | None] = [result.seconds, result.retry_in]
    for each in result.exchanges:
        numbers += [each.seconds, each.cost_usd, each.prompt_bytes, each.prompt_tokens, *astuple(each.usage)]
    if wrong := [number for number in numbers if number is not None and not 0 <= number <= MOST]:
        raise ValidationError(f"{wrong[0]:g} is no count, duration or cost")


def _why_stalled(queue: JobQueue, living: Sequence[WorkerRow]) -> str:
    """Why no living worker can take the jobs of the queue; empty where one can."""
    own = job_version()
    if any(each.version == own for each in living):
        return ""
    start = f"Start one: handrail worker --workspace {quote(queue.workspace)} (with the same --database)."
    if not living:
        return f"No worker takes jobs of the workspace {queue.workspace}. {start}"
    others = ", ".join(sorted({each.version for each in living}))
    return (
        f"The workers of the workspace {queue.workspace} have other versions ({others}; this is {own}), so"
        f" they leave these jobs alone. {start}"
    )


@asynccontextmanager
async def queued_jobs(queue: JobQueue, notify: Callable[[], None]) -> AsyncIterator[QueuedJobs]:
    """A runner that hands jobs to workers; `notify` is called when something has changed.

    Jobs that run when the block ends go on: who submits them again gets their results.
    """
    await run_sync(queue.open)
    try:
        jobs = QueuedJobs(queue, notify)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(jobs.run)
            yield jobs
            tasks.cancel_scope.cancel()
        await run_sync(jobs.close)
    finally:
        with anyio.CancelScope(shield=True):
            await run_sync(queue.close)
