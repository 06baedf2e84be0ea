"""Budgets of splits: what agents, requests and conflicts may cost, and that nothing spent is forgotten."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.app.splits.plans import SplitOptions, keep_plan, plan_task
from handrail.app.splits.run import read_split, run_split
from handrail.app.splits.settle import settle_conflict
from handrail.protocol.errors import BudgetReached
from handrail.protocol.events import SideAnswered, SideAsked
from handrail.protocol.subtask import SplitLimits
from tests.app.splits.splitting import (
    CHECKS,
    ENDS,
    USAGE,
    answer,
    edited,
    events_of,
    kinds,
    module,
    plan_of,
    project,
    resumed,
    split,
    subtask,
)
from tests.engine.conversation import call, conversation, script_file
from tests.postgres import Server

pytestmark = [pytest.mark.anyio]
REQUEST = {"input_tokens": 29_900, "output_tokens": 100}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Copies in a folder with a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


def agents(folder: Path, *numbers: int) -> str:
    """A model whose agents each ask twice, for 30,000 tokens a request."""
    writes = [
        {"when": f"Do a{n}.", "usage": REQUEST, **call("write", path=f"new{n}.py", text="NEW = 1\n")}
        for n in numbers
    ]
    return script_file(
        folder, [*writes, {"text": "Done.", "usage": REQUEST}, {"text": "Done.", "usage": REQUEST}]
    )


@pytest.mark.promise("SPLIT-4")
async def test_agents_together_stay_within_the_whole_budget(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 1)
    plan = plan_of(
        *(subtask(f"a{n}", writes=(f"new{n}.py",), needs="tree") for n in range(3)), tokens=120_100
    )
    async with conversation(root, None, model=agents(tmp_path, 0, 1, 2), settings=CHECKS) as talk:
        report = await split(talk.app, plan)
        assert (report.status, report.counts["done"]) == ("paused: budget", 2), report
        assert report.tokens == 120_000
        assert "the whole split" in report.detail
        report = await resumed(talk.app, report.session_id, limits=SplitLimits(tokens=1_000_000))
        assert (report.status, report.counts["done"]) == (ENDS, 3)


@pytest.mark.promise("SPLIT-4")
async def test_agent_beyond_the_budget_of_its_subtask_fails_alone(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 1)
    two = [subtask(f"a{n}", writes=(f"new{n}.py",), needs="tree") for n in range(2)]
    script = [
        {"when": "Do a0.", "usage": REQUEST, **call("write", path="new0.py", text="NEW = 1\n")},
        {"when": "Do a1.", "text": "Nothing to do.", "usage": REQUEST},
        {"text": "Done.", "usage": REQUEST},
        {"text": "Done.", "usage": REQUEST},
    ]
    async with conversation(root, None, model=script_file(tmp_path, script), settings=CHECKS) as talk:
        report = await split(talk.app, plan_of(*two, subtask_tokens=30_100))
    rows = {row.id: row for row in report.subtasks}
    assert (rows["a0"].status, rows["a1"].status) == ("failed", "done")
    assert "the subtask a0" in rows["a0"].detail
    assert (rows["a0"].tokens, report.tokens) == (30_000, 60_000)


async def test_cost_of_an_agent_that_fails_or_is_cancelled_counts(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 1)
    refused = {"error": {"kind": "give_up", "message": "no"}}
    script = [
        {"when": "Do a0.", "usage": REQUEST, **call("write", path="new0.py", text="NEW = 1\n")},
        refused,
        refused,
    ]
    plan = plan_of(subtask("a0", writes=("new0.py",), needs="tree"), tries=1)
    async with conversation(root, None, model=script_file(tmp_path, script), settings=CHECKS) as talk:
        report = await split(talk.app, plan)
        assert (report.status, report.tokens) == ("paused: failed", 30_000)
        session_id = keep_plan(talk.app, plan)

        def cancels(recorded: object) -> None:
            """Cancel once the first of the agent's requests has ended."""
            if isinstance(getattr(recorded, "event", None), SideAnswered):
                assert read_split(talk.app, session_id).tokens == 30_000, "a kill now would not lose it"
                talk.app.log.put(f"split:{session_id}", '{"action":"cancel"}')

        report = await run_split(talk.app, session_id, saw=cancels)
        assert (report.status, report.tokens) == ("cancelled", 30_000)
        found = events_of(talk.app, session_id)
        assert {each.key for each in kinds(found, SideAsked)} == {"a0/0/1"}
        asked = {each.request_id for each in kinds(found, SideAsked)}
        assert asked == {each.request_id for each in kinds(found, SideAnswered)}


async def test_agent_keeps_its_session_and_cost_out_of_a_shared_log(tmp_path: Path, postgres: Server) -> None:
    root, shared = project(tmp_path / "work", 1), postgres.workspace()
    settings = f'{CHECKS}[database]\nurl = "{shared.url}"\nworkspace = "{shared.workspace}"\n'
    async with conversation(root, None, model=agents(tmp_path, 0), settings=settings) as talk:
        report = await split(talk.app, plan_of(subtask("a0", writes=("new0.py",), needs="tree")))
        assert (report.status, report.tokens) == (ENDS, 60_000)
        assert {each.id for each in talk.app.sessions()} == {talk.id, report.session_id}


CLASH = [answer(f"Do {side}0.", edited("m00.py", "ONE = 0", f"ONE = '{side}'")) for side in "ab"] + [
    {"when": "The other:", "text": json.dumps({"text": "ONE = 'both'"}), "usage": USAGE}
]


@pytest.mark.promise("SPLIT-4")
@pytest.mark.promise("SPLIT-2")
async def test_model_joins_both_sides_of_a_conflict_within_the_budget(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 1)
    async with conversation(root, CLASH, settings=CHECKS) as talk:
        report = await split(talk.app, plan_of(subtask("a0", "m00.py"), subtask("b0", "m00.py")))
        (conflict,) = report.conflicts
        await resumed(talk.app, report.session_id, limits=SplitLimits(tokens=300))
        with pytest.raises(BudgetReached, match="the whole split"):
            await settle_conflict(talk.app, report.session_id, conflict.id, "model")
        assert len(talk.requests) == 2
        assert read_split(talk.app, report.session_id).conflicts == (conflict,)
        await resumed(talk.app, report.session_id, limits=SplitLimits(tokens=100_000))
        report = await settle_conflict(talk.app, report.session_id, conflict.id, "model")
        assert (report.conflicts, report.tokens) == ((), 360)
        report = await resumed(talk.app, report.session_id)
        if ENDS != "complete":
            report = await resumed(talk.app, report.session_id, "accept")
        assert report.status == "complete"
    assert (root / "m00.py").read_text() == module(0).replace("ONE = 0", "ONE = 'both'")


async def test_subtask_named_plan_gets_no_answer_of_the_planner(tmp_path: Path) -> None:
    root = project(tmp_path / "work", 1)
    planned = {"subtasks": [{"id": "plan", "instruction": "Do it.", "files": ["m00.py"]}]}
    script = [
        {"when": "The request: ", "text": json.dumps(planned)},
        answer("Do it.", edited("m00.py", "END = 0", "END = 1")),
    ]
    async with conversation(root, script, settings=CHECKS) as talk:
        session_id = await plan_task(talk.app, "Improve it.", SplitOptions())
        report = await run_split(talk.app, session_id)
        assert (report.status, report.subtasks[0].files) == (ENDS, ("m00.py",))
        assert report.subtasks[0].tokens == 120
