"""How much a model is to think is told to models that take it, and to nobody else."""

from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from handrail.config.settings import ConnectionSettings
from handrail.context.small.one_action_model import OneActionModel
from handrail.models.connect import connect
from handrail.models.model import Capabilities, Request
from handrail.models.providers import BUILT_IN_CONNECTIONS, DEFAULT_MODELS, known_model
from handrail.models.reading.collector import collect_answer
from handrail.models.scripted_model import ScriptedModel
from handrail.protocol.errors import FixRequest
from tests.models.fake_server import FakeServer, Reply, Said
from tests.models.wires import TOOLS, request

KEYS = {name: "k" for each in BUILT_IN_CONNECTIONS.values() for name in each.key_env}
HELLO = Said(text=("Hello.",))


async def sent(reference: str, asked: Request, **settings: Any) -> Any:
    """The body that reaches the server of the reference's connection, and what the model says of itself."""
    name = reference.partition("/")[0]
    with FakeServer([HELLO]) as server:
        path = "" if settings.get("protocol") == "anthropic" or name == "anthropic" else "/v1"
        said = ConnectionSettings(base_url=f"{server.url}{path}", **settings)
        model = await connect(reference, environment=KEYS, settings={name: said})
        server.requests.clear()
        try:
            assert (await collect_answer(model.stream(asked))).text == "Hello."
        finally:
            await model.aclose()
        (got,) = server.requests
        body = got.json
        told = body.get("reasoning_effort") or body.get("output_config", {}).get("effort")
        if told != "none":
            assert told == model.capabilities.effort_for(asked), "what is recorded is what was sent"
        return body


@pytest.mark.anyio
@pytest.mark.promise("MOD-23")
@pytest.mark.parametrize("effort", ["low", "medium", "high"])
async def test_effort_reaches_models_that_take_it_in_the_form_of_their_wire(effort: str) -> None:
    asked = replace(request(), effort=effort, tools=())
    for name, model in DEFAULT_MODELS.items():
        body = await sent(f"{name}/{model}", asked)
        if name == "anthropic":
            assert body["output_config"] == {"effort": effort}
            assert "reasoning_effort" not in body
        else:
            assert body["reasoning_effort"] == effort
            assert "output_config" not in body


@pytest.mark.anyio
@pytest.mark.promise("MOD-23")
async def test_effort_stands_beside_an_output_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    body = await sent(
        "anthropic/claude-opus-5-5", replace(request(), effort="low", tools=(), output_schema=schema)
    )
    assert body["output_config"]["effort"] == "low"
    assert body["output_config"]["format"]["type"] == "json_schema"


@pytest.mark.anyio
@pytest.mark.promise("MOD-23")
@pytest.mark.parametrize(
    "reference",
    [
        "anthropic/claude-haiku-4-5",
        "openai/gpt-4.1",
        "openai/gpt-5-chat-latest",
        "xai/grok-code-fast-1",
        "openrouter/meta/llama-9",
        "ollama/qwen3",
        "office/gpt-6.1-terra",
    ],
)
async def test_effort_is_not_sent_to_a_server_or_model_that_may_refuse_it(reference: str) -> None:
    body = await sent(reference, replace(request(), effort="high", tools=()))
    assert "reasoning_effort" not in body
    assert "output_config" not in body


@pytest.mark.anyio
@pytest.mark.promise("MOD-23")
async def test_a_connection_says_whether_its_models_are_told_an_effort() -> None:
    asked = replace(request(), effort="high")
    assert (await sent("office/big", asked, effort=True))["reasoning_effort"] == "high"
    other = await sent("office/big", asked, effort=True, protocol="anthropic")
    assert other["output_config"] == {"effort": "high"}
    assert "output_config" not in await sent("anthropic/claude-sonnet-5-5", asked, effort=False)


@pytest.mark.anyio
@pytest.mark.promise("MOD-23")
async def test_models_that_take_effort_or_tools_are_not_told_both() -> None:
    asked = replace(request(), effort="high")
    assert asked.tools == TOOLS
    assert (await sent("openai/gpt-6.1-terra", asked))["reasoning_effort"] == "none"
    assert "reasoning_effort" not in await sent("openai/gpt-5.4", asked)
    assert (await sent("openai/gpt-5.2", asked))["reasoning_effort"] == "high"
    written = await sent("openai/gpt-5.4", asked, native_tools=False)
    assert written["reasoning_effort"] == "high"


@pytest.mark.anyio
@pytest.mark.promise("MOD-23")
async def test_without_a_word_on_effort_nothing_is_sent() -> None:
    for reference in ("anthropic/claude-sonnet-5-5", "xai/grok-4.7"):
        body = await sent(reference, request())
        assert "reasoning_effort" not in body
        assert "output_config" not in body


def test_a_small_model_takes_no_effort() -> None:
    asked = replace(request(), effort="high")
    assert OneActionModel(ScriptedModel([])).capabilities.effort_for(asked) is None
    assert Capabilities().effort_for(asked) is None


def test_families_say_whether_they_take_effort() -> None:
    taking = [
        "claude-opus-4-5",
        "claude-sonnet-4.6",
        "gpt-5",
        "o3-mini",
        "openai/gpt-6-sol",
        "gemini-2.5-pro",
    ]
    refusing = ["claude-sonnet-4-5", "gpt-4o", "gpt-5-pro", "o1-mini", "grok-4-1-fast", "nobody-knows"]
    assert all((facts := known_model(name)) and facts.effort for name in taking)
    assert not any((facts := known_model(name)) and facts.effort for name in refusing)


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
async def test_a_server_that_refuses_an_effort_is_told_with_what_to_set(protocol: str) -> None:
    words = b'{"error": {"message": "\'reasoning_effort\' does not support \'high\' with this model."}}'
    refusal = Reply(words, status=400, content_type="application/json", framing="length")
    asked = replace(request(), effort="high")
    with FakeServer([refusal, refusal]) as server:
        said = convert(
            {"base_url": f"{server.url}/v1", "effort": True, "protocol": protocol}, ConnectionSettings
        )
        model = await connect("office/big", environment=KEYS, settings={"office": said})
        try:
            with pytest.raises(
                FixRequest, match=r"effort = false.*connections\.office.*models\.effort\.main"
            ):
                await collect_answer(model.stream(asked))
            with pytest.raises(FixRequest) as unasked:
                await collect_answer(model.stream(replace(asked, effort=None)))
        finally:
            await model.aclose()
    assert "connections.office" not in str(unasked.value), "nothing was sent that could be left out"
