"""Jobs in this process: the runner for one machine. What it has to survive is in the request's log."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from handrail.engine.durable.jobs import Job, JobResult, Perform


class LocalJobs:
    """A `JobRunner` whose jobs are coroutines; they end when the block of `local_jobs` does."""

    def __init__(self, perform: Perform, tasks: TaskGroup, notify: Callable[[], None]) -> None:
        self._perform = perform
        self._tasks = tasks
        self._notify = notify
        self._running: dict[str, anyio.CancelScope] = {}
        self._results: list[JobResult] = []

    async def submit(self, job: Job) -> None:
        if job.key not in self._running:
            scope = self._running[job.key] = anyio.CancelScope()
            self._tasks.start_soon(self._run, job, scope)

    async def cancel(self, key: str) -> None:
        if scope := self._running.get(key):
            scope.cancel()

    def results(self) -> list[JobResult]:
        found, self._results = self._results, []
        return found

    def stalled(self) -> str:
        return ""

    async def _run(self, job: Job, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                result = await self._perform(job)
                self._results.append(result)
        finally:
            del self._running[job.key]
            self._notify()


@asynccontextmanager
async def local_jobs(perform: Perform, notify: Callable[[], None]) -> AsyncIterator[LocalJobs]:
    """A runner in this process; `notify` is called when a job has ended."""
    async with anyio.create_task_group() as tasks:
        yield LocalJobs(perform, tasks, notify)
        tasks.cancel_scope.cancel()
