"""A run is killed at each of its events, and once in earnest: it goes on, and does nothing twice."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.app.app import App
from handrail.config.places import find_places
from handrail.engine.pipeline import Catalogue, Output, Pipeline, Stage, StepContext
from handrail.pipelines.load import AGENT
from handrail.protocol.commands import AnswerApproval, SendMessage
from handrail.protocol.events import (
    ApprovalAsked,
    ChangeApplied,
    Recorded,
    RunCompleted,
    RunResumed,
    RunStarted,
    StageCompleted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from handrail.protocol.ids import session_stream
from handrail.sessions.session import event_from_row
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import conversation, eventually
from tests.engine.scripted import PLAN, QUESTION, answers, as_json, catalogue
from tests.tools.hook_programs import program, section

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]


class Outcome(NamedTuple):
    """What a run has left behind."""

    files: dict[str, str]
    changes: int
    stages: Counter[str]
    ends: int


def begun(workspace: Path) -> subprocess.Popen[bytes]:
    """A process that begins a run there, and comes no further than its third stage."""
    command = [sys.executable, "-m", "tests.engine.killed", str(workspace)]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})


def events(app: App, session_id: str) -> list[Recorded]:
    return [event_from_row(row) for row in app.log.read(session_stream(session_id))]


def outcome(app: App, session_id: str, workspace: Path) -> Outcome:
    found = [one.event for one in events(app, session_id)]
    return Outcome(
        files={path.name: path.read_text() for path in workspace.iterdir() if path.is_file()},
        changes=sum(isinstance(event, ChangeApplied) for event in found),
        stages=Counter(event.stage for event in found if isinstance(event, StageCompleted)),
        ends=sum(isinstance(event, RunCompleted) for event in found),
    )


async def finish(workspace: Path, session_id: str) -> Outcome:
    """Open the session again, say what is still to be said, and wait for the end of the run."""
    async with conversation(
        workspace, answers(), session=session_id, mode="edit", catalogue=catalogue()
    ) as talk:
        await eventually(lambda: is_idle(talk.app, session_id))
        if talk.app.state(session_id).paused:
            await talk.say("1")
            await eventually(lambda: is_idle(talk.app, session_id))
        return outcome(talk.app, session_id, workspace)


@pytest.mark.promise("RUN-2")
async def test_a_run_killed_after_any_commit_ends_as_if_nothing_had_been(tmp_path: Path, home: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    commits = Commits(tmp_path / "kept", home, workspace)
    async with conversation(workspace, answers(), mode="edit", catalogue=catalogue()) as talk:
        with commits.watching(talk.app):
            await talk.send(SendMessage(text=QUESTION, route="report"))
            await talk.until(TurnFinished)
            await talk.turn("1")
        undisturbed, session_id = outcome(talk.app, talk.id, workspace), talk.id
    assert undisturbed.changes == 5
    assert undisturbed.ends == 1
    assert commits.count > 25
    for number in commits.restored():
        assert await finish(workspace, session_id) == undisturbed, number


@pytest.mark.promise("RUN-2")
async def test_a_run_that_is_killed_goes_on_at_its_stage_in_another_process(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    child = begun(workspace)
    await eventually((workspace / "second-1.txt").exists)
    child.kill()
    child.wait()
    async with conversation(workspace, answers(), mode="edit", catalogue=catalogue()) as talk:
        session_id = next(info.id for info in talk.app.sessions() if info.id != talk.id)
    ended = await finish(workspace, session_id)
    assert sorted(ended.files) == [
        "first-1.txt",
        "first-2.txt",
        "report.md",
        "second-1.txt",
        "second-2.txt",
    ]
    assert (ended.changes, ended.ends) == (5, 1)
    assert ended.stages == {"plan": 1, "gather": 2, "draft": 2, "publish": 1}


@pytest.mark.promise("RUN-2")
async def test_a_paused_run_waits_over_a_restart(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        session_id, after = talk.id, talk.app.last_seq(talk.id)
    async with conversation(
        tmp_path, answers(), session=session_id, after=after, mode="edit", catalogue=catalogue()
    ) as talk:
        assert not talk.requests
        state = talk.app.state(session_id)
        assert (state.turn, state.run) == (None, None)
        assert (await talk.turn("1")).reason == "answered"
        assert talk.all(RunResumed)
        assert not talk.all(RunStarted)


@pytest.mark.promise("RUN-2")
async def test_the_users_word_on_a_call_of_a_stage_counts_over_a_restart(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="ask", catalogue=catalogue()) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        await talk.say("1")
        asked = await talk.until(ApprovalAsked)
        session_id, after = talk.id, talk.app.last_seq(talk.id)
    async with conversation(
        tmp_path, answers(), session=session_id, after=after, catalogue=catalogue()
    ) as talk:
        assert list(talk.app.state(session_id).approvals) == [asked.approval_id]
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        written = await talk.until(ToolFinished)
        assert (written.call_id, written.status) == (asked.call_id, "ok")
        assert (await talk.until(ApprovalAsked)).call_id != asked.call_id
        assert (tmp_path / "first-1.txt").exists()
        assert not (tmp_path / "second-1.txt").exists()


@pytest.mark.promise("RUN-2")
async def test_a_command_that_was_cut_off_is_not_run_again(tmp_path: Path) -> None:
    async def step(work: StepContext) -> Output:
        end = await work.call("run", {"command": "sh add.sh"})
        return {"told": end.content}

    once = Pipeline("once", stages=(Stage("run", "code", step="step"),))
    pipelines = Catalogue({"agent": AGENT, "once": once}, steps={"step": step})
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "add.sh").write_text("echo x >> effects; touch begun; sleep 600\n")
    options: dict[str, Any] = {"mode": "auto", "allow": ("sh",), "catalogue": pipelines}
    async with conversation(workspace, **options) as talk:
        await talk.send(SendMessage(text="do it", route="once"))
        await talk.until(ToolStarted)
        await eventually((workspace / "begun").exists)
        session_id = talk.id
    async with conversation(workspace, session=session_id, **options) as talk:
        finished = await talk.until(TurnFinished)
        assert finished.reason == "answered"
        assert [event.status for event in talk.all(ToolFinished)][-1] == "interrupted"
    assert (workspace / "effects").read_text() == "x\n"


@pytest.mark.promise("RUN-2")
async def test_a_kill_while_a_hook_is_heard_at_the_end_asks_no_stage_again(
    tmp_path: Path, home: Path
) -> None:
    plan = Pipeline("plan", stages=(Stage("plan", "ask", prompt="Name the topics.", schema=PLAN),))
    workspace, heard = tmp_path / "work", tmp_path / "heard"
    workspace.mkdir()
    body = f"first = not os.path.exists({str(heard)!r})\nopen({str(heard)!r}, 'a').write('x')\n"
    run = program(find_places(os.environ).settings.parent, f"{body}import time\nfirst and time.sleep(600)\n")
    options: dict[str, Any] = {
        "settings": section("before_end", run, seconds=600),
        "catalogue": catalogue(plan),
    }
    script = [as_json(f"Question:\n{QUESTION}", {"topics": ["costs"]})]
    async with conversation(workspace, script, **options) as talk:
        await talk.send(SendMessage(text=QUESTION, route="plan"))
        await eventually(lambda: heard.exists() and heard.read_text() == "x")
        session_id = talk.id
    async with conversation(workspace, script, session=session_id, **options) as talk:
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert not talk.requests, "what was answered is paid for twice"
        assert [event.stage for event in talk.all(StageCompleted)] == ["plan"]
        assert len(talk.all(RunCompleted)) == 1
    assert heard.read_text() == "xx"
