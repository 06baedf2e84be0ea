"""Splits on workers, while workers, servers and shell commands are killed at any moment."""

import random
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from handrail.__main__ import main
from tests.forks import Forks, forks
from tests.interfaces.cli.program import DEADLINE
from tests.system.worker_fleet import (
    FakeModel,
    all_done_once,
    last_split,
    project,
    query,
    running,
    serving,
    settings,
    split_of,
    worker,
)

AHEAD = (
    *("anyio._backends._asyncio", "psycopg", "dbos", "sqlalchemy.dialects.postgresql.psycopg"),
    *("handrail.app.splits.worker", "handrail.interfaces.cli.commands.servers.worker"),
    *("handrail.models.wire.openai", "handrail.storage.postgres.workers", "handrail.models.wire.sse"),
)
KILLS, FILES = 100, 60
REAPED_WITHIN = 10.0
"""Seconds, where a worker counts as dead after one; the machine may be busy with other tests."""


def forked(words: list[str]) -> None:
    """`handrail`, called so."""
    sys.argv = ["handrail", *words]
    main()


class Fleet:
    """Three workers that are killed at random moments and begun again, until they are let live."""

    def __init__(self, children: list[Forks], words: tuple[str, ...]) -> None:
        self._children = children
        self._words = words
        self._chance = random.Random()
        self._due = [0.0] * len(children)
        self.kills = 0
        for number in range(len(children)):
            self._begin(number)

    def _begin(self, number: int) -> None:
        self._children[number].start(*self._words)
        self._due[number] = time.monotonic() + self._chance.uniform(0.1, 2.0)

    def read(self, seconds: float) -> None:
        """Take what the workers write, for so long."""
        for each in self._children:
            each.read(seconds / len(self._children))

    def kill_next(self) -> None:
        """Kill the one whose moment comes first, and begin another in its place."""
        number = min(range(len(self._due)), key=self._due.__getitem__)
        while (left := self._due[number] - time.monotonic()) > 0:
            self.read(min(left, 0.06))
        self._children[number].kill()
        self.kills += 1
        self._begin(number)


@pytest.mark.promise("WORKER-2")
def test_workers_killed_a_hundred_times_lose_nothing_and_count_nothing_twice(
    place: tuple[str, str], model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, name = place
    home = settings(model, tmp_path / "home", run_on='"workers"')
    monkeypatch.setenv("HANDRAIL_HOME", str(home))
    monkeypatch.setenv("HANDRAIL_DATABASE", url)
    words = ("worker", "--workspace", name, "--parallel", "3")
    roots = [project(tmp_path / side, FILES) for side in ("one", "two")]
    done, rounds, stuck = 0, 0, 0.0
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                forks(__name__, *AHEAD, folder=tmp_path, complaints=tmp_path / f"complaints{number}")
            )
            for number in range(3)
        ]
        servers = [stack.enter_context(serving(root, home=home, url=url, name=name)) for root in roots]
        fleet = Fleet(children, words)
        while fleet.kills < KILLS or rounds == 0:
            rounds += 1
            for root in roots:
                project(root, FILES)
            splits = {server: server.start_split(12) for server in servers}
            deadline = time.monotonic() + 300
            while any(server.split(split)["status"] == "running" for server, split in splits.items()):
                assert time.monotonic() < deadline
                if fleet.kills < KILLS:
                    fleet.kill_next()
                else:
                    fleet.read(0.1)
                stuck = max(stuck, longest_without_worker(url))
            for server, split in splits.items():
                all_done_once(server.split(split), server.root)
                done += FILES
    assert fleet.kills >= KILLS
    assert stuck < REAPED_WITHIN
    assert not any((tmp_path / f"complaints{number}").read_text() for number in range(3))
    assert len(model.asked) == done
    again = sum(model.asked.values()) - done
    assert again <= fleet.kills * 3, "a request is repeated only if its worker was killed"
    assert query(url, "SELECT count(*) FROM dbos.workflow_status") == [(0,)]


def longest_without_worker(url: str) -> float:
    """For how long nobody was heard of who has a job that counts as running, at most."""
    found = query(
        url,
        """
        SELECT coalesce(max(extract(epoch FROM clock_timestamp()
            - coalesce(worker.beat, to_timestamp(job.started_at_epoch_ms / 1000.0)))), 0)::float
        FROM dbos.workflow_status AS job LEFT JOIN handrail.workers AS worker ON worker.id = job.executor_id
        WHERE job.status = 'PENDING'""",
    )
    longest: float = found[0][0]
    return longest


def test_split_that_is_killed_fetches_what_was_done_meanwhile(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place
    home, root = settings(model, tmp_path / "home"), tmp_path / "work"
    with worker("--workspace", name, home=home, url=url) as works:
        with split_of(root, 12, home, place) as split:
            works.until("done")
            split.process.kill()
        words = ("splits", "resume", last_split(root, home, place), "--json")
        with running(*words, home=home, url=url, cwd=root, HANDRAIL_DATABASE_WORKSPACE=name) as resumed:
            assert resumed.end() == 0, resumed.lines
        all_done_once(resumed.json, root)
    assert sum(model.asked.values()) == len(model.asked) == 12


def test_split_of_a_server_that_was_killed_goes_on_when_the_next_one_is_told_to(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place
    home = settings(model, tmp_path / "home", run_on='"workers"')
    root = project(tmp_path / "work", 12)
    with worker("--workspace", name, home=home, url=url) as works:
        with serving(root, home=home, url=url, name=name) as server:
            split = server.start_split(4)
            works.until("done")
            server.running.process.kill()
        with serving(root, home=home, url=url, name=name) as server:
            left = server.split(split)
            assert (left["status"], left["held"]) == ("running", False)
            server.tell(split, "resume")
            deadline = time.monotonic() + DEADLINE
            while (report := server.split(split))["status"] == "running":
                assert time.monotonic() < deadline
        all_done_once(report, root)
    assert sum(model.asked.values()) == len(model.asked) == 12
