"""Windows, abilities and prices come from the best source there is."""

import json
from typing import Any

import pytest

from handrail.config.settings import ConnectionSettings, PriceSettings
from handrail.models.connect import ProbeResult, capabilities_of, connect, read_probe
from handrail.models.model import Capabilities, Model, Price
from handrail.models.prices import cost, cost_by_price, listed_cost, listed_window
from handrail.models.providers import BUILT_IN_CONNECTIONS, DEFAULT_MODELS, build_connection, known_model
from handrail.models.scripted_model import ScriptedModel
from handrail.protocol.values import Usage
from tests.models.fake_server import FakeServer, Recorded, Reply

MILLION = Usage(
    input_tokens=90_000, output_tokens=10_000, cache_read_tokens=50_000, cache_write_tokens=10_000
)


def test_default_models_exist_in_the_price_list_with_a_price() -> None:
    for owner, model in DEFAULT_MODELS.items():
        assert listed_cost(MILLION, owner, model), f"{owner}/{model}"


def test_windows_known_by_name_are_not_larger_than_listed() -> None:
    from genai_prices.data_snapshot import get_snapshot

    providers = {BUILT_IN_CONNECTIONS[name].prices_as for name in ("anthropic", "openai", "xai", "gemini")}
    wrong = [
        (model.id, facts.context_window, model.context_window)
        for provider in get_snapshot().providers
        if provider.id in providers
        for model in provider.models
        if model.context_window and (facts := known_model(model.id)) and not _other_kind(model.id)
        if facts.context_window > model.context_window
    ]
    assert wrong == []


def _other_kind(model: str) -> bool:
    """Models that do not chat in text."""
    return any(
        word in model for word in ("tts", "audio", "realtime", "live", "transcribe", "image", "vision")
    )


@pytest.mark.promise("MOD-14")
def test_cached_tokens_are_priced_as_cached() -> None:
    price = Price(input=10, output=20, cache_read=1, cache_write=12)
    assert cost_by_price(MILLION, price) == pytest.approx(0.3 + 0.05 + 0.12 + 0.2)
    assert cost_by_price(MILLION, Price(input=10, output=20)) == pytest.approx(0.9 + 0.2)
    listed = listed_cost(MILLION, "anthropic", "claude-sonnet-5-5")
    assert listed == pytest.approx((30_000 * 2 + 50_000 * 0.1 + 10_000 * 2.5 + 10_000 * 10) / 1e6)


def test_unknown_model_has_no_price_and_no_window() -> None:
    assert listed_cost(MILLION, "mine", "nobody-knows") is None
    assert listed_window("mine", "nobody-knows") is None
    assert listed_cost(Usage(input_tokens=1, cache_read_tokens=9), "anthropic", "claude-sonnet-5-5") is None


@pytest.mark.anyio
@pytest.mark.promise("MOD-14")
async def test_local_models_cost_nothing_and_hosted_ones_what_the_list_says() -> None:
    environment = {"ANTHROPIC_API_KEY": "k"}
    hosted: Model = await connect("claude-sonnet-5-5", environment=environment)
    assert cost(MILLION, hosted) == listed_cost(MILLION, "anthropic", "claude-sonnet-5-5")
    assert cost(MILLION, ScriptedModel([])) == 0
    with FakeServer([]) as server:
        settings = {"mine": ConnectionSettings(base_url=server.url)}
        assert cost(MILLION, await connect("mine/x", environment={}, settings=settings)) == 0


def test_settings_win_over_everything() -> None:
    mine = build_connection(
        "mine",
        ConnectionSettings(
            base_url="https://host/v1",
            context_window=5000,
            native_tools=False,
            images=False,
            price=PriceSettings(input=1, output=2),
        ),
    )
    probed = ProbeResult(context_window=9000, native_tools=True, images=True, thinking=True)
    assert capabilities_of(mine, "claude-sonnet-5-5", probed) == Capabilities(
        context_window=5000,
        native_tools=False,
        schema_output=True,
        images=False,
        thinking=True,
        price=Price(1, 2),
    )


def test_window_comes_from_the_name_then_the_list_then_caution() -> None:
    assert (
        capabilities_of(BUILT_IN_CONNECTIONS["anthropic"], "claude-sonnet-5-5", ProbeResult()).context_window
        == 1_000_000
    )
    assert (
        capabilities_of(
            BUILT_IN_CONNECTIONS["openrouter"], "anthropic/claude-haiku-4.5", ProbeResult()
        ).context_window
        == 200_000
    )
    listed = listed_window("openrouter", "mistralai/mistral-large")
    assert listed
    assert (
        capabilities_of(
            BUILT_IN_CONNECTIONS["openrouter"], "mistralai/mistral-large", ProbeResult()
        ).context_window
        == listed
    )
    assert (
        capabilities_of(BUILT_IN_CONNECTIONS["openrouter"], "nobody/knows", ProbeResult()).context_window
        == 32_768
    )
    assert (
        capabilities_of(BUILT_IN_CONNECTIONS["llamacpp"], "nobody-knows", ProbeResult()).context_window
        == 8_192
    )


@pytest.mark.parametrize(
    ("found", "probed"),
    [
        ({"models": {"data": [{"id": "m", "max_model_len": 4000}]}}, ProbeResult(4000)),
        ({"models": {"data": [{"id": "m", "meta": {"n_ctx": 5000}}]}}, ProbeResult(5000)),
        ({"props": {"default_generation_settings": {"n_ctx": 6000}}}, ProbeResult(6000)),
        ({"studio": {"data": [{"id": "m", "loaded_context_length": 7000}]}}, ProbeResult(7000)),
        ({"studio": {"data": [{"id": "m", "type": "vlm"}]}}, ProbeResult(images=True)),
        ({"studio": {"data": [{"id": "m", "type": "llm"}]}}, ProbeResult(images=False)),
        ({"props": {"modalities": {"vision": True, "audio": False}}}, ProbeResult(images=True)),
        (
            {
                "show": {"parameters": "stop x\nnum_ctx   8000", "capabilities": ["tools"]},
                "running": {"models": [{"name": "m", "context_length": 9000}]},
            },
            ProbeResult(9000, native_tools=True, images=False, thinking=False),
        ),
        ({"show": {"parameters": "num_ctx 8000"}}, ProbeResult(8000)),
        (
            {"show": {"capabilities": ["completion", "vision"]}},
            ProbeResult(4096, native_tools=False, images=True, thinking=False),
        ),
        ({"models": [], "props": "x", "show": None, "running": {"models": 3}}, ProbeResult()),
    ],
)
def test_what_local_servers_say_is_understood(found: dict[str, Any], probed: ProbeResult) -> None:
    assert read_probe("m", found) == probed


@pytest.mark.anyio
async def test_local_server_is_asked_when_connecting() -> None:
    class Probing(FakeServer):
        def _reply(self, request: Recorded) -> Reply:
            if request.path == "/props":
                body = json.dumps({"default_generation_settings": {"n_ctx": 12_345}}).encode()
                return Reply(body, content_type="application/json", framing="length")
            return super()._reply(request)

    with Probing([]) as server:
        settings = {"llamacpp": ConnectionSettings(base_url=f"{server.url}/v1")}
        model = await connect("llamacpp/m", environment={}, settings=settings)
        assert model.capabilities.context_window == 12_345
        assert model.name == "llamacpp/m"
        await model.aclose()


@pytest.mark.anyio
async def test_local_server_is_not_asked_for_what_the_settings_say() -> None:
    with FakeServer([]) as server:
        said = ConnectionSettings(
            base_url=f"{server.url}/v1", context_window=40_000, native_tools=False, images=True
        )
        model = await connect("mine/m", environment={}, settings={"mine": said})
        assert model.capabilities.context_window == 40_000
        assert (model.capabilities.native_tools, model.capabilities.images) == (False, True)
        assert not server.requests
        await model.aclose()
