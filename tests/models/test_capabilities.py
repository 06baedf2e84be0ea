"""Windows, abilities and prices come from the best source there is."""

import json
from typing import Any

import pytest

from handrail.config.connections import ConnectionSettings, PriceSettings
from handrail.models.base import Capabilities, Model, Price
from handrail.models.capabilities import Probed, describe, read_probe
from handrail.models.connect import connect
from handrail.models.connections import BUILT_IN, connection
from handrail.models.known import DEFAULTS, known
from handrail.models.prices import cost, listed_cost, listed_window, priced
from handrail.models.scripted import ScriptedModel
from handrail.protocol.values import Usage
from tests.models.fake_server import FakeServer, Recorded, Reply

MILLION = Usage(
    input_tokens=90_000, output_tokens=10_000, cache_read_tokens=50_000, cache_write_tokens=10_000
)


def test_default_models_exist_in_the_price_list_with_a_price() -> None:
    for owner, model in DEFAULTS.items():
        assert listed_cost(MILLION, owner, model), f"{owner}/{model}"


def test_windows_known_by_name_are_not_larger_than_listed() -> None:
    from genai_prices.data_snapshot import get_snapshot

    providers = {BUILT_IN[name].prices_as for name in ("anthropic", "openai", "xai", "gemini")}
    wrong = [
        (model.id, facts.context_window, model.context_window)
        for provider in get_snapshot().providers
        if provider.id in providers
        for model in provider.models
        if model.context_window and (facts := known(model.id)) and not _other_kind(model.id)
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
    assert priced(MILLION, price) == pytest.approx(0.3 + 0.05 + 0.12 + 0.2)
    assert priced(MILLION, Price(input=10, output=20)) == pytest.approx(0.9 + 0.2)
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
    mine = connection(
        "mine",
        ConnectionSettings(
            base_url="https://host/v1",
            context_window=5000,
            native_tools=False,
            images=False,
            price=PriceSettings(input=1, output=2),
        ),
    )
    probed = Probed(context_window=9000, native_tools=True, images=True, thinking=True)
    assert describe(mine, "claude-sonnet-5-5", probed) == Capabilities(
        context_window=5000, native_tools=False, images=False, thinking=True, price=Price(1, 2)
    )


def test_window_comes_from_the_name_then_the_list_then_caution() -> None:
    assert describe(BUILT_IN["anthropic"], "claude-sonnet-5-5", Probed()).context_window == 1_000_000
    assert describe(BUILT_IN["openrouter"], "anthropic/claude-haiku-4.5", Probed()).context_window == 200_000
    listed = listed_window("openrouter", "mistralai/mistral-large")
    assert listed
    assert describe(BUILT_IN["openrouter"], "mistralai/mistral-large", Probed()).context_window == listed
    assert describe(BUILT_IN["openrouter"], "nobody/knows", Probed()).context_window == 32_768
    assert describe(BUILT_IN["llamacpp"], "nobody-knows", Probed()).context_window == 8_192


@pytest.mark.parametrize(
    ("found", "probed"),
    [
        ({"models": {"data": [{"id": "m", "max_model_len": 4000}]}}, Probed(4000)),
        ({"models": {"data": [{"id": "m", "meta": {"n_ctx": 5000}}]}}, Probed(5000)),
        ({"props": {"default_generation_settings": {"n_ctx": 6000}}}, Probed(6000)),
        ({"studio": {"data": [{"id": "m", "loaded_context_length": 7000}]}}, Probed(7000)),
        ({"studio": {"data": [{"id": "m", "type": "vlm"}]}}, Probed(images=True)),
        ({"studio": {"data": [{"id": "m", "type": "llm"}]}}, Probed(images=False)),
        ({"props": {"modalities": {"vision": True, "audio": False}}}, Probed(images=True)),
        (
            {
                "show": {"parameters": "stop x\nnum_ctx   8000", "capabilities": ["tools"]},
                "running": {"models": [{"name": "m", "context_length": 9000}]},
            },
            Probed(9000, native_tools=True, images=False, thinking=False),
        ),
        ({"show": {"parameters": "num_ctx 8000"}}, Probed(8000)),
        (
            {"show": {"capabilities": ["completion", "vision"]}},
            Probed(4096, native_tools=False, images=True, thinking=False),
        ),
        ({"models": [], "props": "x", "show": None, "running": {"models": 3}}, Probed()),
    ],
)
def test_what_local_servers_say_is_understood(found: dict[str, Any], probed: Probed) -> None:
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
