"""Splits over HTTP: planned, edited, started, and told what is wanted."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.app.splits.splitting import CHECKS, answer, edited, project
from tests.conftest import NO_SERVER
from tests.interfaces.http.serving import DEADLINE, Served, serving
from tests.pipelines.build.builds import COPIES
from tests.system.worker_fleet import HeldModel, settings
from tests.system.worker_fleet import project as fleet_project
from tests.tools.sandbox.machine import offer, working
from tests.verification.projects import best_sandbox, write

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True, scope="session")
def looked() -> None:
    """Look for sandboxes before the loop of the first test runs."""
    working()


async def until(served: Served, split: str, status: str) -> dict[str, Any]:
    with anyio.fail_after(DEADLINE):
        while True:
            found: dict[str, Any] = (await served.get(f"/splits/{split}"))["split"]
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


@pytest.mark.promise("SPLIT-8")
@pytest.mark.promise("SPLIT-12")
async def test_running_split_is_paused_and_its_parts_left_out_and_tried_again(
    tmp_path: Path, home: Path
) -> None:
    offer(best_sandbox())
    model = HeldModel()
    with model.server:
        settings(model, home / "handrail")
        config = home / "handrail" / "config.toml"
        config.write_text(NO_SERVER + config.read_text())
        fleet_project(tmp_path / "workspace", 3)
        async with serving(tmp_path, model="mine/test-model") as served:
            wanted = {"task": "End.", "files": ["m*.py"], "granularity": "fine", "strategy": "all_at_once"}
            await served.post("/splits", wanted | {"run_on": "workers"}, 409)
            assert (await served.get("/splits"))["splits"] == []
            made = await served.post("/splits", wanted | {"limits": {"parallel": 1, "tries": 1}}, 201)
            assert (made["plan"]["strategy"], made["plan"]["limits"]["tries"]) == ("all_at_once", 1)
            split = made["split"]["session_id"]

            async def send(action: str, *subtasks: str, status: int = 202) -> Any:
                body = {"action": action, "subtask_ids": subtasks}
                return await served.post(f"/splits/{split}/commands", body, status)

            await send("start")
            assert await anyio.to_thread.run_sync(model.came.wait, DEADLINE)
            await send("start", status=409)
            await send("pause")
            await until(served, split, "paused: user")
            model.go.set()
            with anyio.fail_after(DEADLINE):
                while (await served.get(f"/splits/{split}"))["split"]["held"]:
                    await anyio.sleep(0.02)
            left = await send("cancel", "3-m02.py")
            assert [row["status"] for row in left["split"]["subtasks"]] == ["done", "waiting", "cancelled"]
            await send("retry", "nothing", status=409)
            await send("retry", "1-m00.py")
            if not COPIES:
                await until(served, split, "unverified")
                await send("accept")
            done = await until(served, split, "complete")
            assert (done["files"], done["tokens"]) == (["m00.py", "m01.py"], 360)


@pytest.mark.promise("SPLIT-4")
@pytest.mark.promise("SPLIT-12")
async def test_split_goes_on_with_more_budget_and_a_conflict_is_settled_by_a_text(
    tmp_path: Path, home: Path
) -> None:
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": NO_SERVER + CHECKS})
    root = project(tmp_path / "workspace", 1)
    script = [answer(f"Do {name}.", edited("m00.py", "END = 0", f"END = '{name}'")) for name in ("a", "b")]
    subtasks = [{"id": name, "instruction": f"Do {name}.", "files": ["m00.py"]} for name in ("a", "b")]
    async with serving(tmp_path, *script) as served:
        plan = {"task": "End.", "subtasks": subtasks, "limits": {"tokens": 100}}
        split = (await served.post("/splits/plans", plan, 201))["split"]["session_id"]
        await served.post(f"/splits/{split}/commands", {"action": "start"}, 202)
        await until(served, split, "paused: budget")
        more = {"action": "resume", "limits": {"tokens": 90_000}}
        await served.post(f"/splits/{split}/commands", more, 202)
        (conflict,) = (await until(served, split, "paused: conflicts"))["conflicts"]
        await served.post(f"/splits/{split}/conflicts/none", {"by": "ours"}, 409)
        settled = {"by": "text", "text": "END = 'own'"}
        found = await served.post(f"/splits/{split}/conflicts/{conflict['id']}", settled)
        assert found["split"]["conflicts"] == []
        await served.post(f"/splits/{split}/commands", {"action": "resume"}, 202)
        if not COPIES:
            await until(served, split, "unverified")
            await served.post(f"/splits/{split}/commands", {"action": "accept"}, 202)
        await until(served, split, "complete")
        assert (root / "m00.py").read_text().endswith("END = 'own'\n")
