"""Stages with a model and an effort of their own: who is asked, at which price, and what is on record."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.protocol.commands import SetRoute
from handrail.protocol.errors import ConfigProblem
from handrail.protocol.events import RequestStarted, RunStarted, SideAsked, StageCompleted
from tests.engine.commits import Commits, is_idle
from tests.engine.conversation import conversation, eventually
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for
from tests.pipelines.agents import SMALL, agent

pytestmark = pytest.mark.anyio
SETTINGS = """
[connections.main]
base_url = "{url}/main/v1"
[connections.lab]
base_url = "{url}/lab/v1"
effort = true
context_window = 4096
price = {{ input = 10.0, output = 1000.0 }}
{more}
"""
TOPICS = '{"topics": ["costs"]}'


def naming(model: str, more: str = "") -> str:
    """The small agent, its stage with this model."""
    return SMALL.replace('kind = "ask"', f'kind = "ask"\nmodel = "{model}"{more}')


def saying(text: str = TOPICS) -> Callable[[Recorded], Reply]:
    """A server that says this to every stage, and greets in the conversation."""

    def answer(request: Recorded) -> Reply:
        told = json.dumps(request.json["messages"])
        return Reply(body_for(request.path, Said(text=(text if "Question:" in told else "Hello.",))))

    return answer


def asked(server: FakeServer, connection: str) -> list[Recorded]:
    return [each for each in server.requests if f"/{connection}/" in each.path and each.method == "POST"]


def completions(server: FakeServer, connection: str) -> list[Recorded]:
    return [each for each in asked(server, connection) if each.path.endswith("completions")]


@pytest.mark.promise("AGENT-9")
async def test_a_stage_asks_the_model_that_it_names_with_its_effort_and_no_other(tmp_path: Path) -> None:
    agent(tmp_path, text=naming("lab/deep", '\neffort = "high"'))
    with FakeServer(saying()) as server:
        settings = SETTINGS.format(url=server.url, more="[models.effort]\nmain = 'low'")
        async with conversation(tmp_path, None, settings=settings, model="main/m", trust=True) as talk:
            done = await talk.turn("@small look")
            assert done.reason == "answered", done.detail
            (sent,) = completions(server, "lab")
            assert (sent.json["model"], sent.json["reasoning_effort"]) == ("deep", "high")
            assert not completions(server, "main")
            (started,) = talk.all(RequestStarted)
            assert (started.model, started.effort, started.effort_sent) == ("lab/deep", "high", True)
            assert started.stage_id == talk.all(StageCompleted)[0].stage_id
            await talk.turn("Hello")
            (told,) = completions(server, "main")
            assert "reasoning_effort" not in told.json
            *_, hello = talk.all(RequestStarted)
            assert (hello.model, hello.effort, hello.effort_sent) == ("main/m", "low", False)


@pytest.mark.promise("AGENT-9")
async def test_the_role_s_effort_holds_where_a_stage_says_nothing(tmp_path: Path) -> None:
    agent(tmp_path, "plain", SMALL)
    agent(tmp_path, "quick", naming("fast"))
    agent(tmp_path, "named", naming("lab/deep"))
    more = "[models]\nfast = 'lab/quick'\neffort.main = 'high'\neffort.fast = 'low'"
    with FakeServer(saying()) as server:
        settings = SETTINGS.format(url=server.url, more=more)
        async with conversation(tmp_path, None, settings=settings, model="lab/m", trust=True) as talk:
            for slug in ("plain", "quick", "named"):
                assert (await talk.turn(f"@{slug} look")).reason == "answered"
        told = [
            (each.json["model"], each.json.get("reasoning_effort")) for each in completions(server, "lab")
        ]
        assert told == [("m", "high"), ("quick", "low"), ("deep", None)]


@pytest.mark.promise("AGENT-9")
async def test_a_stage_that_works_in_the_conversation_has_its_own_effort(tmp_path: Path) -> None:
    text = SMALL + '\n[[stages]]\nname = "then"\nkind = "work"\neffort = "medium"\n'
    agent(tmp_path, text=text)
    with FakeServer(saying()) as server:
        settings = SETTINGS.format(url=server.url, more="[models.effort]\nmain = 'low'")
        async with conversation(tmp_path, None, settings=settings, model="lab/m", trust=True) as talk:
            assert (await talk.turn("@small look")).reason == "answered"
            assert [each.effort for each in talk.all(RequestStarted)] == ["low", "medium"]
        assert [each.json["reasoning_effort"] for each in completions(server, "lab")] == ["low", "medium"]


@pytest.mark.promise("AGENT-9")
@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("nowhere/m", "your settings have no connection 'nowhere'; known are: anthropic"),
        ("openai/gpt-5.2", "there is no key for openai; put one into OPENAI_API_KEY"),
        ("embedded/smollm2", "is not on this machine yet"),
        ("embedded/nobody", "nobody"),
    ],
)
async def test_a_model_that_cannot_be_asked_is_told_by_line_before_anything_runs(
    tmp_path: Path, model: str, told: str
) -> None:
    file = agent(tmp_path, text=naming(model)) / "agent.toml"
    with FakeServer(saying()) as server:
        settings = SETTINGS.format(url=server.url, more="")
        async with conversation(tmp_path, None, settings=settings, model="main/m", trust=True) as talk:
            done = await talk.turn("@small look")
            assert done.reason == "failed"
            assert f"{file}:9: {model} cannot be asked: " in done.detail
            assert told in done.detail
            with pytest.raises(ConfigProblem, match="cannot be asked"):
                await talk.send(SetRoute(route="small"))
            assert not talk.all(RunStarted)
            assert not completions(server, "main")


@pytest.mark.promise("AGENT-9")
async def test_no_other_model_stands_in_for_the_one_that_a_stage_names(tmp_path: Path) -> None:
    agent(tmp_path, text=naming("lab/deep"))

    def refusing(request: Recorded) -> Reply:
        if "/lab/" in request.path:
            return Reply(b'{"error": {"message": "no"}}', status=403, content_type="application/json")
        return saying()(request)

    with FakeServer(refusing) as server:
        settings = SETTINGS.format(url=server.url, more="[models]\nfallback.main = ['main/other']")
        async with conversation(tmp_path, None, settings=settings, model="main/m", trust=True) as talk:
            done = await talk.turn("@small look")
            assert done.reason == "failed"
            assert completions(server, "lab")
            assert not completions(server, "main")


@pytest.mark.promise("AGENT-9")
async def test_a_budget_counts_with_the_price_and_the_window_of_the_stage_s_own_model(tmp_path: Path) -> None:
    """An answer of 4,096 tokens costs $4 in the lab, and nothing here."""
    agent(tmp_path, "here", SMALL.replace("20_000", "20_000\nusd = 0.50"))
    agent(tmp_path, "lab", naming("lab/deep").replace("20_000", "20_000\nusd = 0.50"))
    agent(tmp_path, "poor", naming("lab/deep").replace("20_000", "20_000\nusd = 0.05"))
    with FakeServer(saying()) as server:
        settings = SETTINGS.format(url=server.url, more="")
        async with conversation(tmp_path, None, settings=settings, model="main/m", trust=True) as talk:
            assert (await talk.turn("@here look")).reason == "answered"
            assert (await talk.turn("@lab look")).reason == "answered"
            poor = await talk.turn("@poor look")
            assert poor.reason == "budget"
            assert "budget of the run of poor" in poor.detail
            here, lab = talk.all(RequestStarted)
            assert here.most_usd == 0
            assert 0.3 < lab.most_usd <= 0.5
        (cheap,), (dear,) = completions(server, "main"), completions(server, "lab")
        assert cheap.json["max_tokens"] > dear.json["max_tokens"]
        assert dear.json["max_tokens"] < 500


@pytest.mark.promise("AGENT-9")
async def test_a_stage_that_was_killed_goes_on_with_the_same_model(tmp_path: Path, home: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    agent(workspace, text=naming("lab/deep", '\neffort = "high"'))
    commits = Commits(tmp_path / "kept", home, workspace)
    with FakeServer(saying()) as server:
        settings = SETTINGS.format(url=server.url, more="")
        async with conversation(workspace, None, settings=settings, model="main/m", trust=True) as talk:
            with commits.watching(talk.app):
                await talk.turn("@small look")
            session_id = talk.id
        asked_again = 0
        for number in commits.restored():
            server.requests.clear()
            async with conversation(
                workspace, None, session=session_id, model="main/other", trust=True
            ) as talk:
                await eventually(lambda app=talk.app: is_idle(app, session_id))  # type: ignore[misc]
            again = completions(server, "lab")
            assert all(each.json["reasoning_effort"] == "high" for each in again), number
            assert not completions(server, "main"), number
            asked_again += len(again)
        assert asked_again


@pytest.mark.promise("MOD-23")
async def test_side_work_has_the_effort_of_its_role_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")
    monkeypatch.setenv("HANDRAIL_MODELS_EFFORT_FAST", "low")
    monkeypatch.setenv("HANDRAIL_MODELS_EFFORT_MAIN", "high")
    with FakeServer(saying()) as server:
        settings = SETTINGS.format(url=server.url, more="[models]\nfast = 'lab/quick'")
        async with conversation(tmp_path, None, settings=settings, model="main/m") as talk:
            await talk.turn("cart.py, the rounding")
            (side,) = talk.all(SideAsked)
            assert (side.model, side.effort, side.effort_sent) == ("lab/quick", "low", True)
            assert completions(server, "lab")[0].json["reasoning_effort"] == "low"
            answered = talk.all(RequestStarted)[-1]
            assert (answered.model, answered.effort, answered.effort_sent) == ("main/m", "high", False)


@pytest.mark.promise("AGENT-10")
@pytest.mark.parametrize(
    ("said", "read"),
    [
        (TOPICS, ("as_is",)),
        (f"Here:\n```json\n{TOPICS}\n```", ("fenced",)),
        (f"Well, {TOPICS} it is.", ("first_object",)),
        ("{'topics': ['costs'],}", ("repaired",)),
        ('{"topics": [1]}', ("as_is", "coerced")),
    ],
)
async def test_how_an_answer_was_read_stands_beside_what_was_understood(
    tmp_path: Path, said: str, read: tuple[str, ...]
) -> None:
    agent(tmp_path)
    with FakeServer(saying(said)) as server:
        settings = SETTINGS.format(url=server.url, more="")
        async with conversation(tmp_path, None, settings=settings, model="main/m", trust=True) as talk:
            done = await talk.turn("@small look")
            assert done.reason == "answered", done.detail
            (completed,) = talk.all(StageCompleted)
            assert completed.read == read
            assert completed.output in ({"topics": ["costs"]}, {"topics": ["1"]})
