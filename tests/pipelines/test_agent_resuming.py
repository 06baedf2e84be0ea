"""An agent of a folder is killed after each of its commits: it goes on, and does and keeps nothing twice."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.app.app import App
from handrail.engine.run_record import kept_before
from handrail.models.model import UserTurn
from handrail.protocol.events import (
    Answered,
    ChangeApplied,
    RunCompleted,
    RunRepaired,
    StageCompleted,
    TurnFinished,
)
from handrail.protocol.ids import session_stream
from handrail.sessions.session import event_from_row
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import conversation, eventually
from tests.pipelines.agents import QUESTION, QUOTE, agent, answers, as_json, demo

pytestmark = pytest.mark.anyio
KEEPS = """
[[keeps]]
name = "asked"
stage = "analyse"
field = "questions"
"""


class Outcome(NamedTuple):
    """What a run of the agent has left behind."""

    report: str
    changes: int
    stages: Counter[str]
    repairs: int
    kept: dict[str, Any]
    ends: int


def outcome(app: App, session_id: str, workspace: Path) -> Outcome:
    found = [event_from_row(row).event for row in app.log.read(session_stream(session_id))]
    return Outcome(
        report=(workspace / "report.md").read_text(),
        changes=sum(isinstance(event, ChangeApplied) for event in found),
        stages=Counter(event.stage for event in found if isinstance(event, StageCompleted)),
        repairs=sum(isinstance(event, RunRepaired) for event in found),
        kept=dict(kept_before(app.log, app.turn_factory.catalogue.find("report"))),
        ends=sum(isinstance(event, RunCompleted) for event in found),
    )


@pytest.mark.promise("RUN-2")
async def test_an_agent_killed_after_any_commit_ends_as_if_nothing_had_been(
    tmp_path: Path, home: Path
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    definition = demo(workspace) / "agents/report/agent.toml"
    definition.write_text(definition.read_text() + KEEPS)
    commits = Commits(tmp_path / "kept", home, workspace)
    async with conversation(workspace, answers(), mode="edit", trust=True) as talk:
        with commits.watching(talk.app):
            await talk.turn(f"@report {QUESTION}")
            await talk.turn("1")
        undisturbed, session_id = outcome(talk.app, talk.id, workspace), talk.id
    assert QUOTE in undisturbed.report
    assert undisturbed.stages == {"analyse": 1, "gather": 1, "draft": 2, "cite": 1, "write": 1}
    assert (undisturbed.changes, undisturbed.repairs, undisturbed.ends) == (1, 1, 1)
    assert len(undisturbed.kept["asked"]) == 2
    assert commits.count > 20
    for number in commits.restored():
        async with conversation(workspace, answers(), session=session_id, mode="edit", trust=True) as talk:
            await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            if talk.app.state(session_id).paused:
                await talk.say("1")
                await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            assert outcome(talk.app, session_id, workspace) == undisturbed, number


WORKS = """
name = "Works"
description = "Works, then counts"
[budget]
tokens = 50_000
[[stages]]
name = "plan"
kind = "ask"
prompt = "prompts/ask.md"
[stages.output]
type = "object"
properties.topics = { type = "array", items = { type = "string" } }
[[stages]]
name = "write"
kind = "work"
takes = ["plan"]
"""


@pytest.mark.promise("RUN-2")
async def test_a_stage_of_work_in_an_agent_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    agent(tmp_path, text=WORKS)
    script = [
        as_json("Question:\n", {"topics": ["fog"]}),
        {"when": "was closed while you answered", "text": "All is written."},
        {"when": "Output of plan", "text": "Half of it and more. " * 20},
    ]
    async with conversation(tmp_path, script, trust=True) as talk:
        talk.held.hold(0, 30)
        await talk.say("@small write about fog")
        await talk.held.reached(0, 30)
        session_id, after = talk.id, talk.app.last_seq(talk.id)
    async with conversation(tmp_path, script, session=session_id, after=after, trust=True) as talk:
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert isinstance(talk.requests[-1].messages[-1], UserTurn)
        assert [event.text for event in talk.all(Answered)][-1] == "All is written."
