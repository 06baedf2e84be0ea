"""What stages are told: the outputs that they take and no others, a schema, and never a secret."""

import json
from pathlib import Path

import pytest

from handrail.engine.pipeline import Catalogue, Output, Pipeline, Stage, StepContext
from handrail.pipelines.load import AGENT
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import RunCompleted, StageCompleted, TurnFinished
from tests.engine.conversation import Conversation, conversation, words
from tests.engine.scripted import PLAN, as_json
from tests.models.fake_server import FakeServer, Said

pytestmark = pytest.mark.anyio
KEY = "0123456789abcdef"
CORP = '[connections.corp]\nbase_url = "http://127.0.0.1:1/v1"\nkey_env = ["CORP_LLM"]\n'
TOPICS = '{"topics": ["costs"]}'


async def leaky(_work: StepContext) -> Output:
    return {"found": f"the key is {KEY}"}


async def first(_work: StepContext) -> Output:
    return {"of": "first"}


async def seen(work: StepContext) -> Output:
    return {"seen": {name: dict(output) for name, output in work.outputs.items()}}


STEPS = {"leaky": leaky, "first": first, "seen": seen}


def catalogue(*stages: Stage) -> Catalogue:
    return Catalogue({"agent": AGENT, "p": Pipeline("p", stages=stages)}, steps=STEPS)


async def ask(talk: Conversation, text: str = "Why?") -> TurnFinished:
    await talk.send(SendMessage(text=text, route="p"))
    return await talk.until(TurnFinished)


@pytest.mark.promise("TOOL-14")
async def test_a_stage_that_asks_a_model_tells_it_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORP_LLM", KEY)
    pipelines = catalogue(
        Stage("look", "code", step="leaky"),
        Stage("plan", "ask", prompt=f"Use {KEY} to plan.", takes=("look",), schema=PLAN),
    )
    script = [as_json("Question:", {"topics": []})]
    async with conversation(tmp_path, script, settings=CORP, catalogue=pipelines) as talk:
        done = await ask(talk, f"What does {KEY} cost?")
        assert done.reason == "answered", done.detail
    (request,) = talk.requests
    assert "Use [secret CORP_LLM] to plan." in request.system
    assert "What does [secret CORP_LLM] cost?" in words(request)
    assert "the key is [secret CORP_LLM]" in words(request)
    assert KEY not in request.system + words(request)


async def test_the_schema_of_a_stage_goes_to_a_model_that_takes_one_and_in_words_to_all(
    tmp_path: Path,
) -> None:
    pipelines = catalogue(Stage("plan", "ask", prompt="Name the topics.", schema=PLAN))
    with FakeServer([Said(text=(TOPICS,))]) as server:
        settings = "".join(
            f'[connections.{name}]\nbase_url = "{server.url}/{name}/v1"\nschema_output = {takes}\n'
            for name, takes in (("takes", "true"), ("plain", "false"))
        )
        for name in ("takes", "plain"):
            async with conversation(
                tmp_path, None, settings=settings, model=f"{name}/m", catalogue=pipelines
            ) as talk:
                assert (await ask(talk)).reason == "answered"
        asked = [each.json for each in server.requests if each.path.endswith("/completions")]
    takes, plain = asked
    assert takes["response_format"]["json_schema"]["schema"] == PLAN
    assert "response_format" not in plain
    for body in asked:
        assert json.dumps(PLAN) in body["messages"][0]["content"]


async def test_a_stage_is_given_the_outputs_that_it_takes_and_no_others(tmp_path: Path) -> None:
    pipelines = catalogue(
        Stage("one", "code", step="first"),
        Stage("two", "code", step="leaky"),
        Stage("three", "code", step="seen", takes=("one",)),
        Stage("four", "ask", schema=PLAN, takes=("one", "three")),
    )
    async with conversation(tmp_path, [as_json("Question:", {"topics": []})], catalogue=pipelines) as talk:
        assert (await ask(talk)).reason == "answered"
    outputs = {event.stage: event.output for event in talk.all(StageCompleted)}
    assert outputs["three"] == {"seen": {"one": {"of": "first"}}}
    told = words(talk.requests[0])
    assert 'Output of one:\n{"of": "first"}' in told
    assert "Output of three:" in told
    assert "Output of two:" not in told
    assert KEY not in told
    assert talk.all(RunCompleted)
