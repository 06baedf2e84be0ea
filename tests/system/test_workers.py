"""Workers and what can happen to them: a cut network, full disks, wrong clocks, other versions."""

import base64
import json
import os
import pickle
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.cut_connection import Proxy
from tests.interfaces.cli.program import command, environment, run
from tests.postgres import Server
from tests.project.source import ROOT
from tests.system.worker_fleet import (
    TOKENS,
    USD,
    FakeModel,
    all_done_once,
    changed,
    last_split,
    project,
    query,
    settings,
    split_of,
    worker,
)

# The network


@pytest.mark.promise("WORKER-3")
def test_worker_that_is_cut_off_loses_its_jobs_to_others_and_works_on_when_it_is_back(
    place: tuple[str, str], tmp_path: Path
) -> None:
    url, name = place
    slow = FakeModel(pause=1.5)
    proxy = Proxy(urlsplit(url).port or 0)
    with slow.server, closing(proxy):
        home = settings(slow, tmp_path / "home")
        through = url.replace(f":{urlsplit(url).port}/", f":{proxy.port}/")
        words = ("--workspace", name, "--parallel", "2")
        with worker(*words, home=home, url=through) as far:
            with split_of(tmp_path / "one", 2, home, place) as split:
                far.until("began")
                proxy.hold()
                with worker(*words, home=home, url=url) as near:
                    assert split.end() == 0, split.lines
                    all_done_once(split.json, tmp_path / "one")
                    assert near.lines
            proxy.refuse()
            far.until("This worker goes on when it can be reached again")
            proxy.restore()
            far.until("the database can be reached again")
            with split_of(tmp_path / "two", 2, home, place) as split:
                assert split.end() == 0, split.lines
            all_done_once(split.json, tmp_path / "two")
            far.process.send_signal(signal.SIGTERM)
            assert far.end() == 0


@pytest.mark.promise("WORKER-10")
def test_split_waits_for_its_database_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    server, slow = Server(), FakeModel(pause=0.3)
    place = server.url, "shop"
    try:
        with slow.server:
            home = settings(slow, tmp_path / "home")
            with (
                worker("--workspace", "shop", "--parallel", "2", home=home, url=server.url) as far,
                split_of(tmp_path / "work", 12, home, place) as split,
            ):
                far.until("done")
                server.stop(signal.SIGQUIT)
                split.until("The split goes on when it can be reached again")
                server.start()
                assert split.end() == 0, split.lines
        found = split.json
        assert found["counts"]["done"] == 12
        assert 12 * TOKENS <= found["tokens"] <= sum(slow.asked.values()) * TOKENS
        assert changed(tmp_path / "work") == [f"m{number:02}.py" for number in range(12)]
    finally:
        server.remove()


# Clocks and versions


def with_change(folder: Path, code: str) -> dict[str, str]:
    """Variables under which Python runs this code when it starts."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": f"{ROOT / 'src'}:{folder}"}


@pytest.mark.promise("WORKER-4")
def test_clocks_that_are_an_hour_wrong_change_nothing(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    home = settings(model, tmp_path / "home")
    code = "import time\nreal = time.time\ntime.time = lambda: real() {}\n"
    late, early = (
        with_change(tmp_path / side, code.format(hours))
        for side, hours in (("late", "- 3600"), ("early", "+ 3600"))
    )
    words = ("--workspace", place[1], "--parallel", "2")
    with (
        worker(*words, home=home, url=place[0], **late) as one,
        worker(*words, home=home, url=place[0], **early) as other,
        split_of(tmp_path / "work", 24, home, place, **early) as split,
    ):
        assert split.end() == 0, split.lines
        all_done_once(split.json, tmp_path / "work")
        assert sum(model.asked.values()) == len(model.asked) == 24
        assert all(any("done" in line for line in each.lines) for each in (one, other))


@pytest.mark.promise("WORKER-5")
def test_jobs_wait_for_a_worker_of_their_version_and_say_so(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place
    home = settings(model, tmp_path / "home")
    newer = with_change(tmp_path / "newer", "import handrail\nhandrail.__version__ = '99.0'\n")
    with split_of(tmp_path / "work", 3, home, place) as split:
        split.until(f"No worker takes jobs of the workspace {name}")
        with worker("--workspace", name, home=home, url=url, **newer) as other:
            split.until("have other versions (99.0")
            split_id = last_split(tmp_path / "work", home, place)
            shown = run(
                *("splits", "show", split_id, "--json"),
                cwd=tmp_path / "work",
                HANDRAIL_HOME=str(home),
                HANDRAIL_DATABASE=url,
                HANDRAIL_DATABASE_WORKSPACE=name,
            )
            assert "99.0" in json.loads(shown.stdout)["stalled"]
            with worker("--workspace", name, home=home, url=url) as own:
                assert split.end() == 0, split.lines
                all_done_once(split.json, tmp_path / "work")
                assert own.until("done")
            assert not any("began" in line for line in other.lines)


@pytest.mark.promise("WORKER-11")
def test_worker_leaves_jobs_of_other_workspaces_alone(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place
    home = settings(model, tmp_path / "home")
    elsewhere = url, f"{name}-other"
    with (
        worker("--workspace", elsewhere[1], home=home, url=url) as other,
        split_of(tmp_path / "work", 2, home, place) as split,
    ):
        split.until(f"No worker takes jobs of the workspace {name}")
        with split_of(tmp_path / "other", 2, home, elsewhere) as others:
            assert others.end() == 0, others.lines
        with worker("--workspace", name, home=home, url=url):
            assert split.end() == 0, split.lines
        all_done_once(split.json, tmp_path / "work")
        assert sum("began" in line for line in other.lines) == 2


# Workers that cannot work


@pytest.mark.promise("WORKER-6")
def test_worker_whose_key_is_refused_ends_and_its_job_goes_to_another(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    refused = FakeModel()
    refused.refuses = True
    with refused.server:
        homes = [settings(each, tmp_path / f"home{at}") for at, each in enumerate((refused, model))]
        words = ("--workspace", place[1])
        with split_of(tmp_path / "work", 3, homes[1], place) as split:
            with worker(*words, home=homes[0], url=place[0]) as bad:
                assert bad.end() == 1
                assert "handrail: " in bad.lines[-1]
                assert "key" in bad.lines[-1]
            with worker(*words, home=homes[1], url=place[0]):
                assert split.end() == 0, split.lines
        all_done_once(split.json, tmp_path / "work")


def test_worker_that_cannot_use_the_database_or_a_model_says_why(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place
    home = settings(model, tmp_path / "home")
    wrong = url.replace("//handrail@", "//nobody:secret-password@")
    words = ("worker", "--workspace", name)
    for changes, status, told in (
        ({"HANDRAIL_DATABASE": wrong}, 1, 'role "nobody" does not exist'),
        ({"HANDRAIL_DATABASE": url, "HANDRAIL_MODEL": "anthropic/none"}, 1, "ANTHROPIC_API_KEY"),
        ({}, 2, "--database"),
    ):
        ended = run(*words, cwd=tmp_path, HANDRAIL_HOME=str(home), **changes)
        assert (ended.returncode, ended.stdout) == (status, "")
        assert told in ended.stderr
        assert "secret-password" not in ended.stderr
    ended = run("worker", cwd=tmp_path, HANDRAIL_HOME=str(home), HANDRAIL_DATABASE=url)
    assert ended.returncode == 2
    assert "--workspace" in ended.stderr


def test_worker_works_on_a_full_disk_unless_it_cannot_even_say_what_it_does(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place
    home = settings(model, tmp_path / "home")
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    changes = with_change(tmp_path / "full", full)
    with split_of(tmp_path / "work", 3, home, place) as split:
        with Path("/dev/full").open("w") as nowhere:
            mute = subprocess.run(
                command("worker", "--workspace", name),
                env=environment(HANDRAIL_HOME=str(home), HANDRAIL_DATABASE=url),
                stdout=nowhere,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
            )
        assert mute.returncode == 1
        assert "No space left on device" in mute.stderr
        with worker("--workspace", name, home=home, url=url, **changes):
            assert split.end() == 0, split.lines
    all_done_once(split.json, tmp_path / "work")


def test_stopped_worker_ends_its_jobs_or_gives_them_back(place: tuple[str, str], tmp_path: Path) -> None:
    url, name = place
    slow = FakeModel(pause=1.5)
    with slow.server:
        home = settings(slow, tmp_path / "home")
        words = ("--workspace", name, "--parallel", "1")
        with split_of(tmp_path / "work", 3, home, place) as split:
            with worker(*words, home=home, url=url) as first:
                first.until("began")
                first.process.send_signal(signal.SIGTERM)
                assert first.end() == 0
                assert first.until("done")
            with worker(*words, "--grace", "0", home=home, url=url) as second:
                second.until("began")
                second.process.send_signal(signal.SIGINT)
                assert second.end() == 0
                assert second.until("1 unfinished jobs are back on the queue")
            with worker(*words, home=home, url=url):
                assert split.end() == 0, split.lines
        all_done_once(split.json, tmp_path / "work")
        assert sum(slow.asked.values()) <= 4, "only the job that was given back is asked for again"


# What leaves the machine, and what may come in


@pytest.mark.promise("WORKER-7")
@pytest.mark.promise("WORKER-9")
def test_known_secrets_are_hidden_in_what_workers_get(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place[0].replace("@", ":p%40ss-of-the-database@"), place[1]
    secret, password = "hunter2-hunter2-hunter2", "p@ss-of-the-database"
    home = settings(model, tmp_path / "home")
    root = project(tmp_path / "work", 2)
    (root / ".env").write_text(f"SERVICE_PASSWORD={secret}\n")
    with (root / "m01.py").open("a") as file:
        file.write(f"\nPASSWORD, DATABASE = '{secret}', '{password}'\n")
    with split_of(root, 2, home, (url, name)) as split:
        split.until("No worker takes jobs")
        queued = query(url, "SELECT inputs FROM dbos.workflow_input")
        assert len(queued) == 2
        assert secret not in str(queued)
        assert password not in str(queued)
        assert "m01.py" in str(queued)
        with worker("--workspace", name, home=home, url=url):
            assert split.end() == 0, split.lines
        audit = ("audit", split.json["session_id"])
        place_of = {
            "HANDRAIL_HOME": str(home),
            "HANDRAIL_DATABASE": url,
            "HANDRAIL_DATABASE_WORKSPACE": name,
        }
        rows = [json.loads(line) for line in run(*audit, "--json", cwd=root, **place_of).stdout.splitlines()]
        assert [(row["model"], row["cost_usd"]) for row in rows] == [
            ("mine/test-model", pytest.approx(USD))
        ] * 2
        sent, _, answered = run(*audit, "--raw", "1", cwd=root, **place_of).stdout.partition("\n")
        assert str(json.loads(sent)["messages"]) in model.seen
        assert answered.startswith("data: ")
    assert len(model.seen) == 2
    assert secret not in str(model.seen)
    assert secret in (root / "m01.py").read_text()
    assert "new m01.py" in (root / "m01.py").read_text()


def test_pickled_job_in_the_database_runs_no_code(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place
    home = settings(model, tmp_path / "home")
    mark = tmp_path / "mark"

    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(mark),)

    pickled = base64.b64encode(pickle.dumps({"args": (Hostile(),), "kwargs": {}})).decode()
    with worker("--workspace", name, home=home, url=url):
        query(
            url,
            """
            INSERT INTO dbos.workflow_status
            (workflow_uuid, status, name, queue_name, serialization, priority, recovery_attempts)
            VALUES ('hostile', 'ENQUEUED', 'handrail_subtask', %(queue)s, 'py_pickle', 0, 0)""",
            {"queue": f"handrail:{name}"},
        )
        query(
            url,
            "INSERT INTO dbos.workflow_input (workflow_uuid, inputs) VALUES ('hostile', %(inputs)s)",
            {"inputs": pickled},
        )
        with split_of(tmp_path / "work", 2, home, place) as split:
            assert split.end() == 0, split.lines
    query(url, "DELETE FROM dbos.workflow_status WHERE workflow_uuid = 'hostile'")
    assert not mark.exists()


@pytest.mark.promise("WORKER-8")
def test_split_on_workers_stays_within_its_budget(
    place: tuple[str, str], model: FakeModel, tmp_path: Path
) -> None:
    url, name = place
    home = settings(model, tmp_path / "home")
    with (
        worker("--workspace", name, home=home, url=url),
        split_of(tmp_path / "work", 12, home, place, "--max-tokens", "1500") as split,
    ):
        assert split.end() == 4, split.lines
    report = split.json
    assert report["status"] == "paused: budget"
    assert report["tokens"] <= 1_500
    assert report["tokens"] == report["counts"]["done"] * TOKENS > 0
    assert changed(tmp_path / "work") == []
