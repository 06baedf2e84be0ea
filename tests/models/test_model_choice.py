"""Which model answers, and why."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.config.settings import ConnectionSettings
from handrail.models.connect import connect
from handrail.models.embedded.model_files import QWEN
from handrail.models.model_choice import ModelChoice, RequestedModels, choose_model, find_local_server
from handrail.models.providers import (
    BUILT_IN_CONNECTIONS,
    DEFAULT_MODELS,
    Connection,
    all_connections,
    build_connection,
    resolve_model,
)
from handrail.protocol.errors import Authenticate, ConfigProblem, NoModel, UsageProblem
from tests.models.fake_server import FakeServer

pytestmark = pytest.mark.anyio

KEYS = {
    "ANTHROPIC_API_KEY": "a",
    "OPENAI_API_KEY": "b",
    "XAI_API_KEY": "c",
    "OPENROUTER_API_KEY": "d",
    "GOOGLE_API_KEY": "e",
}


async def nothing(_available: Mapping[str, Connection]) -> str | None:
    return None


async def server(_available: Mapping[str, Connection]) -> str | None:
    return "ollama/qwen"


@pytest.mark.promise("MOD-13")
async def test_first_place_that_names_a_model_wins() -> None:
    wishes = RequestedModels(
        flag="gpt-1", session="grok-2", before="gpt-5", workspace="gemini-3", user="claude-4"
    )
    owners = {
        "flag": "openai",
        "session": "xai",
        "before": "openai",
        "workspace": "gemini",
        "user": "anthropic",
    }
    reasons = set()
    for place, owner in owners.items():
        chosen = await choose_model(wishes, environment=KEYS, find=server)
        assert chosen.reference.startswith(f"{owner}/")
        reasons.add(chosen.why)
        wishes = wishes._replace(**{place: ""})  # type: ignore[arg-type]
    assert len(reasons) == 5


@pytest.mark.promise("MOD-13")
async def test_then_the_first_key_in_order_then_a_server_then_the_doors() -> None:
    keys = dict(KEYS)
    for owner, variable in zip(DEFAULT_MODELS, list(keys), strict=True):
        chosen = await choose_model(RequestedModels(), environment=keys, find=server)
        assert chosen == ModelChoice(f"{owner}/{DEFAULT_MODELS[owner]}", f"there is a key in {variable}")
        keys.pop(variable)
    assert (await choose_model(RequestedModels(), environment={}, find=server)).reference == "ollama/qwen"
    with pytest.raises(NoModel) as caught:
        await choose_model(RequestedModels(), environment={"OPENAI_API_KEY": " "}, find=nothing)
    assert "ANTHROPIC_API_KEY" in str(caught.value)
    assert "Ollama" in str(caught.value)
    office = {"office": ConnectionSettings(base_url="http://127.0.0.1:1/v1"), "openai": ConnectionSettings()}
    with pytest.raises(NoModel) as caught:
        await choose_model(RequestedModels(), environment={}, settings=office, find=nothing)
    assert "`handrail model office/MODEL` chooses its model" in str(caught.value)
    assert "openai/MODEL" not in str(caught.value)


@pytest.mark.promise("EMB-12")
async def test_last_comes_our_own_model_and_nothing_is_downloaded_for_it(tmp_path: Path) -> None:
    environment = {"HANDRAIL_HOME": str(tmp_path)}
    with pytest.raises(NoModel) as caught:
        await choose_model(RequestedModels(), environment=environment, find=nothing)
    assert "`handrail model fetch` (a download of 1.1 GB, once)" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / QWEN.name).touch()
    chosen = await choose_model(RequestedModels(), environment=environment, find=nothing)
    assert chosen == ModelChoice("embedded/qwen2.5-coder-1.5b", "no key and no local server found")
    assert (
        await choose_model(RequestedModels(), environment=environment, find=server)
    ).reference == "ollama/qwen"
    keyed = await choose_model(RequestedModels(), environment=environment | KEYS, find=nothing)
    assert keyed.reference.startswith("anthropic/")


async def test_our_own_model_can_be_asked_for_by_name() -> None:
    for words in ("embedded", "embedded/qwen2.5-coder-1.5b", " embedded "):
        chosen = await choose_model(RequestedModels(flag=words), environment={}, find=nothing)
        assert chosen.reference == "embedded/qwen2.5-coder-1.5b"
    with pytest.raises(UsageProblem, match=r"qwen2\.5"):
        await choose_model(RequestedModels(flag="embedded/other"), environment={}, find=nothing)


async def test_stored_key_counts_like_one_in_the_environment() -> None:
    chosen = await choose_model(RequestedModels(), environment={}, credential={"xai": "k"}.get, find=nothing)
    assert chosen.reference.startswith("xai/")
    assert "stored key" in chosen.why


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        ("anthropic/claude-x", "anthropic/claude-x"),
        ("openrouter/meta/llama:free", "openrouter/meta/llama:free"),
        ("claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("gpt-9", "openai/gpt-9"),
        ("o3-mini", "openai/o3-mini"),
        ("grok-9", "xai/grok-9"),
        ("gemini-9", "gemini/gemini-9"),
        (" xai ", f"xai/{DEFAULT_MODELS['xai']}"),
    ],
)
def test_reference_is_understood(words: str, reference: str) -> None:
    assert resolve_model(words, BUILT_IN_CONNECTIONS).reference == reference


@pytest.mark.parametrize(
    "words", ["", "llama", "nowhere/x", "ollama", "ollama/", "/x", "open sesame", "oops"]
)
def test_reference_that_means_nothing_says_what_is_possible(words: str) -> None:
    with pytest.raises(UsageProblem, match="MODEL"):
        resolve_model(words, BUILT_IN_CONNECTIONS)


def test_nothing_need_be_set_for_the_usual_places() -> None:
    hosted = {"anthropic", "openai", "xai", "openrouter", "gemini"}
    assert set(BUILT_IN_CONNECTIONS) == hosted | {"ollama", "llamacpp", "lmstudio", "vllm"}
    assert (
        {name for name, each in BUILT_IN_CONNECTIONS.items() if not each.local}
        == hosted
        == set(DEFAULT_MODELS)
    )
    assert all(BUILT_IN_CONNECTIONS[name].key_env and BUILT_IN_CONNECTIONS[name].prices_as for name in hosted)


def test_settings_under_a_built_in_name_change_only_what_they_say() -> None:
    changed = all_connections({"openai": ConnectionSettings(base_url="https://proxy.example/v1/")})["openai"]
    assert changed.base_url == "https://proxy.example/v1"
    assert changed.output_limit == "max_completion_tokens"
    assert changed.key_env == ("OPENAI_API_KEY",)


@pytest.mark.parametrize("name", ["", "a/b", "scripted", "embedded"])
def test_connection_names_that_cannot_be_told_apart_are_refused(name: str) -> None:
    with pytest.raises(ConfigProblem):
        build_connection(name, ConnectionSettings(base_url="http://x"))


@pytest.mark.parametrize("url", ["", "host/v1", "ftp://host", "http://"])
def test_connection_without_a_usable_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigProblem, match="base_url"):
        build_connection("mine", ConnectionSettings(base_url=url))


async def test_missing_key_names_the_variable() -> None:
    with pytest.raises(Authenticate, match="GEMINI_API_KEY or GOOGLE_API_KEY"):
        await connect("gemini-3", environment={})


async def test_key_with_strange_characters_is_refused_without_being_shown() -> None:
    with pytest.raises(Authenticate) as caught:
        await connect("claude-x", environment={"ANTHROPIC_API_KEY": "sk-ant\nsecret"})
    assert "secret" not in str(caught.value)


async def test_local_server_is_found_with_its_first_model_that_can_chat() -> None:
    with FakeServer([], models=("nomic-embed-text", "qwen3")) as fake:
        dead = ConnectionSettings(base_url="http://127.0.0.1:9")
        settings = dict.fromkeys(("ollama", "llamacpp", "vllm"), dead)
        settings["lmstudio"] = ConnectionSettings(base_url=f"{fake.url}/v1")
        assert await find_local_server(all_connections(settings)) == "lmstudio/qwen3"
