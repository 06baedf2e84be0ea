"""Secrets in splits: no model is told them, and their marks are written by nobody."""

import hashlib
import json
from pathlib import Path

import pytest

from handrail.app.splits.plans import keep_plan
from handrail.app.splits.run import read_split, run_split
from handrail.app.splits.settle import settle_conflict
from handrail.changes.forms.document import Document, RewriteChange
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import SideAsked
from tests.app.splits.splitting import (
    CHECKS,
    ENDS,
    answer,
    edited,
    module,
    plan_of,
    project,
    resumed,
    split,
    subtask,
)
from tests.engine.conversation import call, conversation, script_file, words
from tests.verification.projects import commit

pytestmark = [pytest.mark.anyio]
SECRET, MARK = "hunter2-hunter2-hunter2", "[secret SERVICE_PASSWORD in .env]"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = project(tmp_path / "work", 2)
    (root / ".env").write_text(f"SERVICE_PASSWORD={SECRET}\n")
    (root / "m00.py").write_text(f"PASSWORD = '{SECRET}'\n\nTEXT = 'same'\n")
    return root


@pytest.mark.promise("SPLIT-17")
async def test_answer_with_a_mark_in_place_of_a_secret_is_not_used(root: Path) -> None:
    whole = {"path": "m00.py", "text": f"PASSWORD = '{MARK}'\n\nTEXT = 'new'\n"}
    script = [answer("Do a0.", whole), answer("Do a1.", edited("m00.py", "'same'", "'new'"))]
    async with conversation(root, script, settings=CHECKS) as talk:
        report = await split(talk.app, plan_of(subtask("a0", "m00.py"), tries=1))
        assert report.status == "paused: failed"
        assert f"{MARK} stands for a secret" in report.detail
        report = await split(talk.app, plan_of(subtask("a1", "m00.py")))
        if ENDS != "complete":
            report = await resumed(talk.app, report.session_id, "accept")
        assert report.status == "complete"
        assert all(SECRET not in words(request) for request in talk.requests)
    assert (root / "m00.py").read_text() == f"PASSWORD = '{SECRET}'\n\nTEXT = 'new'\n"


@pytest.mark.promise("SPLIT-17")
async def test_lines_that_a_model_joins_hold_no_secret_and_lose_none(root: Path) -> None:
    script = [
        answer("Do a0.", edited("m01.py", "ONE = 1", "ONE = 'new'")),
        {"when": "The other:", "text": json.dumps({"text": f"ONE = 'new' + '{MARK}'"})},
    ]
    async with conversation(root, script, settings=CHECKS) as talk:
        session_id = keep_plan(talk.app, plan_of(subtask("a0", "m01.py")))

        def meddle(recorded: object) -> None:
            if isinstance(getattr(recorded, "event", None), SideAsked):
                (root / "m01.py").write_text(module(1).replace("ONE = 1", f"ONE = '{SECRET}'"))

        report = await run_split(talk.app, session_id, saw=meddle)
        (conflict,) = report.conflicts
        assert SECRET in (conflict.ours or "")
        with pytest.raises(PathProblem, match="stands for a secret"):
            await settle_conflict(talk.app, session_id, conflict.id, "model")
        assert MARK in words(talk.requests[-1])
        assert SECRET not in words(talk.requests[-1])
        assert read_split(talk.app, session_id).conflicts == (conflict,)


async def test_result_of_a_build_is_not_accepted_with_a_mark_in_place_of_a_secret(root: Path) -> None:
    """What a build and a split hand in is a model's text, although the user applies it."""
    before = (root / "m00.py").read_text()
    async with conversation(root) as talk:
        old = hashlib.sha256(before.encode()).hexdigest()
        document = Document((RewriteChange("m00.py", before.replace(SECRET, MARK), old),))
        finished = await talk.app.proposals.apply(document, title="x", word=None)
        assert finished.status == "refused"
    assert (root / "m00.py").read_text() == before


@pytest.mark.promise("SPLIT-17")
async def test_agent_in_a_copy_is_told_no_secret_of_the_workspace(root: Path, tmp_path: Path) -> None:
    (root / ".gitignore").write_text(".env\n")
    commit(root)
    script = [
        {"when": "Do a0.", **call("read", path="m00.py")},
        {"when": MARK, **call("write", path="seen.py", text="MARK = 1\n")},
        {"text": "Done."},
        {"text": "Done."},
        {"text": "Done."},
    ]
    async with conversation(root, None, model=script_file(tmp_path, script), settings=CHECKS) as talk:
        plan = plan_of(subtask("a0", "m00.py", writes=("seen.py",), needs="tree"))
        report = await split(talk.app, plan)
        assert report.subtasks[0].files == ("seen.py",), report.subtasks[0].detail
