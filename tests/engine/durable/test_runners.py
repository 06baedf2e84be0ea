"""Runners of jobs, here and on workers: every result once, none after a cancellation or lost in a restart."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest

from handrail.engine.durable.jobs import JobResult, JobRunner
from handrail.engine.durable.local import local_jobs
from handrail.engine.durable.queue import JobQueue, queue_name
from handrail.engine.durable.queued import queued_jobs
from handrail.engine.host.wakeup import Wakeup
from handrail.storage.postgres.workers import MOST_OUTPUT
from tests.engine.durable.working import job, lines, perform
from tests.project.source import ROOT

if TYPE_CHECKING:
    from tests.postgres import Server

pytestmark = pytest.mark.anyio
DEADLINE = 60.0
KINDS = ("here", "workers")


class Place(NamedTuple):
    """Where jobs run in a test."""

    opens: Callable[[Callable[[], None]], AbstractAsyncContextManager[JobRunner]]
    url: str = ""
    workspace: str = ""


@pytest.fixture(scope="module")
def worker(postgres: "Server") -> Iterator[tuple[str, str]]:
    """URL and workspace of a worker that runs as a process."""
    place = postgres.workspace()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.engine.durable.working", place.url, place.workspace],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"started\n"
        yield place.url, place.workspace
        process.kill()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "here":
        return Place(lambda notify: local_jobs(perform, notify))
    url, workspace = request.getfixturevalue("worker")
    return Place(lambda notify: queued_jobs(JobQueue(url, workspace), notify), url, workspace)


@asynccontextmanager
async def runner(place: Place) -> AsyncIterator["Jobs"]:
    wakeup = Wakeup()
    with anyio.fail_after(DEADLINE):
        async with place.opens(wakeup.notify) as jobs:
            yield Jobs(jobs, wakeup)


class Jobs(NamedTuple):
    runner: JobRunner
    wakeup: Wakeup

    async def results(self, count: int) -> list[JobResult]:
        """So many results, as they come."""
        found: list[JobResult] = []
        while len(found) < count:
            seen = self.wakeup.version
            found += self.runner.results()
            if len(found) < count:
                await self.wakeup.wait(seen)
        return found


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE):
        while not condition():
            await anyio.sleep(0.01)


@pytest.mark.promise("WORKER-1")
async def test_each_result_comes_once_and_one_key_is_one_job(place: Place, tmp_path: Path) -> None:
    async with runner(place) as jobs:
        for key in ("a/0/1", "b/0/1", "a/0/1"):
            await jobs.runner.submit(job(key, f"hold {tmp_path / key[0]}"))
        await until(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
        assert jobs.runner.results() == []  # read while they run
        (tmp_path / "a.go").touch()
        (tmp_path / "b.go").touch()
        found = await jobs.results(2)
        assert sorted((each.key, each.summary) for each in found) == [("a/0/1", "hold"), ("b/0/1", "hold")]
        await jobs.runner.submit(job("c/0/1", f"count {tmp_path / 'c'}"))
        assert [each.key for each in await jobs.results(1)] == ["c/0/1"]
    assert [lines(tmp_path / name) for name in "abc"] == [["a/0/1"], ["b/0/1"], ["c/0/1"]]


async def test_cancelled_job_has_no_result_and_can_be_submitted_again(place: Place, tmp_path: Path) -> None:
    async with runner(place) as jobs:
        await jobs.runner.submit(job("d/0/1", f"hold {tmp_path / 'd'}"))
        await until((tmp_path / "d").exists)
        await jobs.runner.cancel("d/0/1")
        await jobs.runner.submit(job("e/0/1", f"count {tmp_path / 'e'}"))
        assert [each.key for each in await jobs.results(1)] == ["e/0/1"]
        (tmp_path / "d.go").touch()
        await jobs.runner.submit(job("d/0/1", f"count {tmp_path / 'd'}"))
        assert [(each.key, each.summary) for each in await jobs.results(1)] == [("d/0/1", "count")]


async def test_job_of_a_runner_that_ended_is_fetched_by_the_next(place: Place, tmp_path: Path) -> None:
    async with runner(place) as jobs:
        await jobs.runner.submit(job("f/0/1", f"hold {tmp_path / 'f'}"))
        await until((tmp_path / "f").exists)
    (tmp_path / "f.go").touch()
    async with runner(place) as jobs:
        await jobs.runner.submit(job("f/0/1", f"hold {tmp_path / 'f'}"))
        assert [each.key for each in await jobs.results(1)] == ["f/0/1"]
    assert len(lines(tmp_path / "f")) == (1 if place.url else 2)


async def test_job_is_submitted_again_after_a_result_that_was_of_no_use(place: Place, tmp_path: Path) -> None:
    async with runner(place) as jobs:
        for _ in range(2):
            await jobs.runner.submit(job("g/0/1", f"count {tmp_path / 'g'}"))
            assert [each.key for each in await jobs.results(1)] == ["g/0/1"]
    assert lines(tmp_path / "g") == ["g/0/1", "g/0/1"]


@pytest.mark.parametrize("holder", ["'dead'", "(SELECT id FROM handrail.workers WHERE %s = ANY(queues))"])
async def test_answer_that_is_on_record_is_not_asked_for_again(
    worker: tuple[str, str], tmp_path: Path, holder: str
) -> None:
    """Whoever counts as its worker: a dead one, or one that was cut off before it knew."""
    import psycopg

    url, workspace = worker
    place = Place(lambda notify: queued_jobs(JobQueue(url, workspace), notify))
    async with runner(place) as jobs:
        await jobs.runner.submit(job("h/0/1", f"hold {tmp_path / 'h'}"))
        await until((tmp_path / "h").exists)
    (tmp_path / "h.go").touch()
    with psycopg.connect(url, autocommit=True) as database:

        def is_changed() -> bool:
            statement = (
                f"UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = {holder}"  # noqa: S608
                " WHERE workflow_uuid = 's_1/h/0/1' AND status = 'SUCCESS'"
            )
            values = (queue_name(workspace),) if "%s" in holder else ()
            return database.execute(statement.encode(), values).rowcount == 1

        # As a worker leaves it that is killed after the answer, and before the end.
        await until(is_changed)
    async with runner(place) as jobs:
        await jobs.runner.submit(job("h/0/1", f"hold {tmp_path / 'h'}"))
        assert [(each.key, each.summary) for each in await jobs.results(1)] == [("h/0/1", "hold")]
    assert lines(tmp_path / "h") == ["h/0/1"]


@pytest.mark.promise("WORKER-8")
@pytest.mark.parametrize(
    ("output", "why"),
    [
        ({"usage": {"input_tokens": -1_000_000}}, "-1e+06 is no count"),
        ({"cost_usd": -5.0}, "-5 is no count"),
        ({"prompt_tokens": 10**30}, "1e+30 is no count"),
        ({"text": "x" * MOST_OUTPUT}, "larger than 32 MB"),
    ],
    ids=["tokens", "cost", "large", "long"],
)
async def test_result_that_would_spoil_a_budget_or_fill_the_memory_is_refused(
    postgres: "Server", output: dict[str, Any], why: str
) -> None:
    import psycopg

    found = postgres.workspace()
    place = Place(lambda notify: queued_jobs(JobQueue(found.url, found.workspace), notify))
    exchange = {"model": "m", "role": "main", "request": "", "raw": "", "text": "", **output}
    forged = json.dumps(json.dumps({"key": "i/0/1", "exchanges": [exchange]}))
    with psycopg.connect(found.url, autocommit=True) as database:

        def is_forged() -> bool:
            ended = database.execute(
                "WITH ended AS (UPDATE dbos.workflow_status SET status = 'SUCCESS', executor_id = 'liar'"
                " WHERE workflow_uuid = 's_1/i/0/1' RETURNING workflow_uuid)"
                " INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output)"
                " SELECT workflow_uuid, 1, 'ask', %s FROM ended",
                (forged,),
            )
            return ended.rowcount == 1

        async with runner(place) as jobs:
            await jobs.runner.submit(job("i/0/1", "nobody takes it"))
            await until(is_forged)
            [result] = await jobs.results(1)
    assert why in result.problem
    assert (result.exchanges, result.again, result.worker) == ((), True, "liar")


async def test_job_whose_name_is_taken_says_so(postgres: "Server") -> None:
    import psycopg

    found = postgres.workspace()
    place = Place(lambda notify: queued_jobs(JobQueue(found.url, found.workspace), notify))
    async with runner(place) as jobs:
        with psycopg.connect(found.url, autocommit=True) as database:
            database.execute(
                "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, priority,"
                " recovery_attempts) VALUES ('s_1/j/0/1', 'ENQUEUED', 'other', 'q', 0, 0)"
            )
        await jobs.runner.submit(job("j/0/1", "nobody takes it"))
        await until(lambda: "Somebody else has put a job of this name" in jobs.runner.stalled())
        await jobs.runner.cancel("j/0/1")


async def test_queue_is_opened_by_a_url_with_several_hosts(postgres: "Server") -> None:
    import psycopg

    found = postgres.workspace()
    url = found.url.replace("@", "@127.0.0.1:1,")
    async with runner(Place(lambda notify: queued_jobs(JobQueue(url, found.workspace), notify))) as jobs:
        await jobs.runner.submit(job("k/0/1", "nobody takes it"))
        with psycopg.connect(found.url, autocommit=True) as database:

            def is_queued() -> bool:
                query = "SELECT 1 FROM dbos.workflow_status WHERE workflow_uuid = 's_1/k/0/1'"
                return bool(database.execute(query).fetchall())

            await until(is_queued)
        await jobs.runner.cancel("k/0/1")


async def test_advice_to_start_a_worker_can_be_pasted_into_a_shell(postgres: "Server") -> None:
    place = Place(lambda notify: queued_jobs(JobQueue(postgres.url, "shop; reboot"), notify))
    async with runner(place) as jobs:
        await jobs.runner.submit(job("l/0/1", "nobody takes it"))
        await until(lambda: "handrail worker --workspace 'shop; reboot' (" in jobs.runner.stalled())
        await jobs.runner.cancel("l/0/1")
