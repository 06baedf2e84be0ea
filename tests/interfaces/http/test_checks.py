"""Checks over HTTP: which there are, one verification at a time, its verdict, and stopping it."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.conftest import NO_SERVER
from tests.interfaces.http.serving import DEADLINE, Served, serving
from tests.tools.sandbox.machine import offer, working
from tests.verification.projects import best_sandbox, commit, write

pytestmark = pytest.mark.anyio

CHECKS = """\
[checks]
detect = false
[[checks.commands]]
name = "lint"
kind = "lint"
run = "sh lint.sh"
[[checks.commands]]
name = "slow"
kind = "build"
run = "sh slow.sh"
"""
COPIES = best_sandbox().name == "bubblewrap"
FAILING = "echo 'src/a.py:2: error: too long'\nexit 1\n"


@pytest.fixture(autouse=True, scope="session")
def looked() -> None:
    """Look for sandboxes before the loop of the first test runs."""
    working()


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A folder whose server has two checks of the user's."""
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": NO_SERVER + CHECKS})
    return write(tmp_path / "workspace", {"lint.sh": "true\n", "slow.sh": "true\n", "src/a.py": "x = 1\n"})


async def ended(served: Served) -> dict[str, Any]:
    """What the checks have found, once they have ended."""
    with anyio.fail_after(DEADLINE):
        while True:
            found: dict[str, Any] = await served.get("/checks/result")
            if found["state"] != "running":
                return found


@pytest.mark.promise("HTTP-11")
async def test_checks_are_listed_run_and_compared_with_what_was_there_before(
    project: Path, tmp_path: Path
) -> None:
    write(project, {"lint.sh": FAILING})
    commit(project)
    write(project, {"src/a.py": "x = 2\n", "slow.sh": "echo 'src/a.py:1: error: new'\nexit 1\n"})
    async with serving(tmp_path) as served:
        assert await served.get("/checks/result") == (await served.post("/checks/cancel"))
        listed = (await served.get("/checks"))["checks"]
        assert [(each["name"], each["command"], each["missing"]) for each in listed] == [
            ("lint", "sh lint.sh", ""),
            ("slow", "sh slow.sh", ""),
        ]
        assert (await served.post("/checks/run", {}, 202))["state"] == "running"
        found = await ended(served)
        assert (found["state"], found["problem"], found["rows"]) == ("done", "", [])
        verdict = found["verdict"]
        assert verdict["status"] == "failed"
        issues = {each["name"]: each["issues"] for each in verdict["checks"] if each["issues"]}
        origins = {name: [each["origin"] for each in found] for name, found in issues.items()}
        expected = (
            {"lint": ["before"], "slow": ["change"]} if COPIES else {"lint": ["unknown"], "slow": ["unknown"]}
        )
        assert origins == expected
        assert any("sandbox" in note for note in verdict["notes"])
        await served.post("/checks/run", {"only": ["lint"], "changed": True}, 202)
        again = await ended(served)
        assert (again["options"]["only"], again["verdict"]["checks"][0]["name"]) == (["lint"], "lint")


@pytest.mark.promise("HTTP-11")
async def test_one_verification_runs_at_a_time_and_can_be_stopped(project: Path, tmp_path: Path) -> None:
    write(project, {"slow.sh": "sleep 1000\n"})
    async with serving(tmp_path) as served:
        await served.post("/checks/run", {}, 202)
        with anyio.fail_after(DEADLINE):
            while True:
                found = await served.get("/checks/result")
                rows = {each["name"]: each for each in found["rows"]}
                if rows and rows["slow"]["running"]:
                    break
        assert (rows["slow"]["doing"], rows["slow"]["result"]) == ("sh slow.sh", None)
        assert rows["lint"]["result"]["status"] == "passed"
        assert found["verdict"] is None
        refused = await served.post("/checks/run", {}, 409)
        assert refused["error"]["code"] == "running"
        stopped = await served.post("/checks/cancel")
        assert (stopped["state"], stopped["verdict"]) == ("stopped", None)
        write(project, {"slow.sh": "true\n"})
        await served.post("/checks/run", {}, 202)
        assert (await ended(served))["verdict"]["status"] == "passed"


@pytest.mark.promise("HTTP-11")
async def test_server_ends_while_checks_run(project: Path, tmp_path: Path) -> None:
    write(project, {"slow.sh": "sleep 1000\n"})
    with anyio.fail_after(DEADLINE):
        async with serving(tmp_path) as served:
            await served.post("/checks/run", {"only": ["slow"]}, 202)
            run = served.server.workspace().check_run
            assert run
    assert run.state == "stopped"


async def test_wrong_options_are_refused_with_what_there_is(project: Path, tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        unknown = await served.post("/checks/run", {"only": ["nothing"]}, 409)
        assert "There are: lint, slow" in unknown["error"]["message"]
        await served.post("/checks/run", {"changed": True}, 409)  # nothing was ever committed
        await served.post("/checks/run", {"only": "lint"}, 400)
        await served.post("/checks/run", {"base": "no-such-commit"}, 202)
        found = await ended(served)
        assert found["state"] == "failed"
        assert "no-such-commit" in found["problem"]


@pytest.mark.promise("VERIFY-8")
async def test_checks_of_an_untrusted_repository_do_not_run(
    project: Path, tmp_path: Path, home: Path
) -> None:
    write(home / "handrail", {"config.toml": NO_SERVER})
    write(project, {".handrail/config.toml": CHECKS})
    async with serving(tmp_path) as served:
        assert (await served.get("/checks"))["checks"] == []
        await served.post("/checks/run", {}, 202)
        assert (await ended(served))["verdict"]["status"] == "unverified"
