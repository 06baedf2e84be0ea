"""What a run spends beside its answers: requests that were killed, and questions about the run itself."""

from pathlib import Path

import pytest

from handrail.engine.limits import Budget
from handrail.engine.pipeline import Pipeline, Stage
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import RequestStarted, RunFailed, SideAsked, StageStarted, TurnFinished
from tests.engine.commits import Commits
from tests.engine.conversation import Conversation, conversation
from tests.engine.scripted import DRAFT, PLAN, QUESTION, answers, catalogue, report
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for

pytestmark = pytest.mark.anyio
SETTINGS = """
[connections.mine]
base_url = "{url}/v1"
price = {{ input = 10.0, output = 100.0 }}
"""


async def begin(talk: Conversation) -> TurnFinished:
    await talk.send(SendMessage(text=QUESTION, route="report"))
    return await talk.until(TurnFinished)


@pytest.mark.promise("RUN-7")
@pytest.mark.parametrize(
    ("budget", "told"),
    [(Budget(tokens=2_000), "2,000 of 2,000 tokens"), (Budget(usd=0.10), "$0.10 of $0.10")],
)
async def test_a_request_that_was_killed_on_its_way_counts_with_all_that_it_may_have_cost(
    tmp_path: Path, home: Path, budget: Budget, told: str
) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    commits = Commits(tmp_path / "kept", home, workspace)
    pipelines, restarted = catalogue(report(run=budget)), False

    def answer(request: Recorded) -> Reply:
        said = Reply(body_for(request.path, Said(text=('{"topics": []}',))))
        return said if restarted else Reply(silent_after=0)

    with FakeServer(answer) as server:
        settings = SETTINGS.format(url=server.url)
        async with conversation(
            workspace, None, settings=settings, model="mine/m", catalogue=pipelines
        ) as talk:
            with commits.watching(talk.app):
                await talk.send(SendMessage(text=QUESTION, route="report"))
                await talk.until(RequestStarted)
            session_id = talk.id
        *_, _killed_here = commits.restored()
        restarted = True
        async with conversation(
            workspace, None, model="mine/m", session=session_id, catalogue=pipelines
        ) as talk:
            finished = await talk.until(TurnFinished)
    assert finished.reason == "budget"
    assert told in finished.detail
    assert len(talk.all(RequestStarted)) == 1


@pytest.mark.promise("RUN-7")
async def test_asking_what_a_word_means_is_paid_by_the_paused_run_and_held_to_its_budget(
    tmp_path: Path,
) -> None:
    priced = [
        {**each, "usage": {"input_tokens": 900, "output_tokens": 100}}
        for each in answers(means="breakout", sure=0.9)
    ]
    pipelines = catalogue(report(run=Budget(tokens=2_300)))
    async with conversation(tmp_path, priced, mode="edit", catalogue=pipelines) as talk:
        await begin(talk)
        paused = talk.app.state(talk.id).paused
        assert paused
        assert paused.tokens() == 1_000
        await talk.turn("how is this project installed?")
        (asked,) = talk.all(SideAsked)
        assert talk.requests[-1].max_output_tokens < asked.most_tokens <= 1_300
        paused = talk.app.state(talk.id).paused
        assert paused
        assert paused.tokens() == 2_000
        finished = await talk.turn("2")
    assert finished.reason == "budget"
    assert "2,000 of 2,300 tokens" in finished.detail


FIRST = Stage("plan", "ask", prompt="Plan.", schema=PLAN)
NEXT = {
    "ask": Stage("draft", "ask", prompt="Draft.", schema=DRAFT),
    "code": Stage("gather", "code", step="gather", takes=("plan",)),
    "answer": Stage("tell", "answer"),
}


@pytest.mark.promise("ENG-13")
@pytest.mark.parametrize("kind", NEXT)
async def test_no_stage_begins_its_work_beyond_a_limit_of_the_turn(tmp_path: Path, kind: str) -> None:
    pipelines = catalogue(Pipeline("report", stages=(FIRST, NEXT[kind])))
    script = [{"text": '{"topics": []}'}]
    async with conversation(tmp_path, script, mode="edit", catalogue=pipelines, max_steps=1) as talk:
        finished = await begin(talk)
        assert [event.stage for event in talk.all(StageStarted)] == ["plan", NEXT[kind].name]
    assert finished.reason == "budget"
    assert "limits.steps" in finished.detail
    assert len(talk.requests) == 1
    assert talk.all(RunFailed)[0].reason == "budget"
    assert list(tmp_path.glob("*.txt")) == []
