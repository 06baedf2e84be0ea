"""Splits over HTTP: planned, edited, started, and told what is wanted."""

from pathlib import Path

import anyio
import pytest

from tests.app.splits.splitting import CHECKS, answer, edited, project
from tests.conftest import NO_SERVER
from tests.interfaces.http.serving import DEADLINE, Served, serving
from tests.pipelines.build.builds import COPIES
from tests.tools.sandbox.machine import offer, working
from tests.verification.projects import best_sandbox, write

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True, scope="session")
def looked() -> None:
    """Look for sandboxes before the loop of the first test runs."""
    working()


async def until(served: Served, split: str, status: str) -> dict[str, object]:
    with anyio.fail_after(DEADLINE):
        while True:
            found: dict[str, object] = (await served.get(f"/splits/{split}"))["split"]
            if str(found["status"]).startswith(status):
                return found
            await anyio.sleep(0.02)


@pytest.mark.promise("SPLIT-12")
async def test_split_is_planned_edited_started_and_ends(tmp_path: Path, home: Path) -> None:
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": NO_SERVER + CHECKS})
    project(tmp_path / "workspace", 3)
    script = [answer(f"### m0{n}.py", edited(f"m0{n}.py", "END = 0", "END = 1")) for n in range(3)]
    async with serving(tmp_path, *script) as served:
        made = await served.post("/splits", {"task": "End.", "files": ["m*.py"], "granularity": "fine"}, 201)
        split = made["split"]["session_id"]
        assert [each["strategy"] for each in made["estimates"]] == ["graph", "sequential", "all_at_once"]
        plan = made["plan"] | {"subtasks": made["plan"]["subtasks"][:2]}
        assert (await served.client.put(f"/api/splits/{split}/plan", json=plan)).status_code == 200
        wrong = plan | {"subtasks": [plan["subtasks"][0] | {"depends_on": ["none"]}]}
        assert (await served.client.put(f"/api/splits/{split}/plan", json=wrong)).status_code == 409
        await served.post(f"/splits/{split}/commands", {"action": "start"}, 202)
        if not COPIES:
            await until(served, split, "unverified")
            await served.post(f"/splits/{split}/commands", {"action": "accept"}, 202)
        found = await until(served, split, "complete")
        assert found["files"] == ["m00.py", "m01.py"]
        assert (await served.get("/splits"))["splits"][0]["done"] == 2
        await served.post(f"/splits/{split}/commands", {"action": "pause"}, 409)
        await served.post("/splits/s_none/commands", {"action": "start"}, 409)
