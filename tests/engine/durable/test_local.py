"""The runner for one machine: every result once, none after a cancellation, none twice at the same time."""

import anyio
import pytest

from handrail.engine.durable.jobs import Job, JobResult
from handrail.engine.durable.local import local_jobs
from handrail.engine.host.wakeup import Wakeup
from handrail.protocol.subtask import Subtask

pytestmark = pytest.mark.anyio


def job(key: str) -> Job:
    return Job(key, Subtask("a", "Do a.", ("a.py",)), "", (), ())


async def test_result_that_comes_while_others_are_read_is_not_lost() -> None:
    wakeup, goes_on = Wakeup(), anyio.Event()

    async def perform(given: Job) -> JobResult:
        await goes_on.wait()
        return JobResult(given.key)

    with anyio.fail_after(60):
        async with local_jobs(perform, wakeup.notify) as jobs:
            for key in ("a/0/1", "b/0/1", "a/0/1"):
                await jobs.submit(job(key))
            await anyio.wait_all_tasks_blocked()
            assert jobs.results() == []  # read while they run
            goes_on.set()
            found: list[str] = []
            while len(found) < 2:
                seen = wakeup.version
                found += [each.key for each in jobs.results()]
                if len(found) < 2:
                    await wakeup.wait(seen)
            assert sorted(found) == ["a/0/1", "b/0/1"]
            await anyio.wait_all_tasks_blocked()
            assert jobs.results() == []


async def test_cancelled_job_has_no_result_and_can_be_submitted_again() -> None:
    wakeup, begun = Wakeup(), 0

    async def perform(given: Job) -> JobResult:
        nonlocal begun
        begun += 1
        if begun == 1:
            await anyio.sleep_forever()
        return JobResult(given.key)

    with anyio.fail_after(60):
        async with local_jobs(perform, wakeup.notify) as jobs:
            await jobs.submit(job("a/0/1"))
            await anyio.wait_all_tasks_blocked()
            await jobs.cancel("a/0/1")
            await anyio.wait_all_tasks_blocked()
            assert jobs.results() == []
            await jobs.submit(job("a/0/1"))
            await anyio.wait_all_tasks_blocked()
            assert [each.key for each in jobs.results()] == ["a/0/1"]
