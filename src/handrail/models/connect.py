"""Connect to a model: find its key, learn what it can do, or say why it cannot be reached."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import anyio

from handrail.config.extras import install_command
from handrail.config.settings import ConnectionSettings, SdkProvider
from handrail.models.model import Capabilities, Model
from handrail.models.prices import listed_window
from handrail.models.providers import (
    EMBEDDED,
    LOCAL_PRICE,
    NO_EFFORT_WITH_TOOLS,
    PROVIDER_SDKS,
    SCRIPTED,
    Connection,
    all_connections,
    bare_name,
    known_model,
    resolve_model,
)
from handrail.models.structured_output import StructuredOutput, WayMemory
from handrail.models.wire.http_client import load_http_library
from handrail.models.wire.transport import Transport
from handrail.protocol.errors import Authenticate, ConfigProblem, ModelProblem, UsageProblem

PROBE_SECONDS = 1.0
LOCAL_WINDOW, HOSTED_WINDOW = 8_192, 32_768
OLLAMA_WINDOW = 4_096
"""Ollama's default; it silently truncates longer prompts."""


class ProbeResult(NamedTuple):
    """What a local server says about a model; None where it says nothing."""

    context_window: int | None = None
    native_tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None


def capabilities_of(connection: Connection, model: str, probed: ProbeResult) -> Capabilities:
    """Capabilities from settings, probing and known facts."""
    facts = known_model(model)
    window = connection.context_window or probed.context_window or (facts and facts.context_window)
    if window is None:
        window = LOCAL_WINDOW if connection.local else listed_window(connection.name, model) or HOSTED_WINDOW
    return Capabilities(
        context_window=window,
        native_tools=connection.native_tools and probed.native_tools is not False,
        schema_output=connection.schema_output is not False,
        images=_first_known(connection.images, probed.images, facts and facts.images),
        thinking=_first_known(probed.thinking, facts and facts.thinking),
        effort=connection.effort is True or (connection.effort == "known" and bool(facts and facts.effort)),
        effort_with_tools=not NO_EFFORT_WITH_TOOLS.match(bare_name(model)),
        price=connection.price or (LOCAL_PRICE if connection.local else None),
    )


def _first_known(*values: bool | None) -> bool:
    return next((value for value in values if value is not None), False)


async def probe_server(connection: Connection, model: str, key: str) -> ProbeResult:
    """What a local llama.cpp, vLLM, LM Studio or Ollama server says about a model."""
    wire = Transport(connection, key)
    root = urlunsplit(urlsplit(connection.base_url)._replace(path="", query=""))
    asked = {
        "models": (f"{connection.base_url}/models", None),
        "props": (f"{root}/props", None),
        "running": (f"{root}/api/ps", None),
        "show": (f"{root}/api/show", {"model": model}),
        "studio": (f"{root}/api/v0/models", None),
    }
    found: dict[str, Any] = {}

    async def ask(name: str, url: str, content: dict[str, Any] | None) -> None:
        try:
            found[name] = await wire.get_json(url, PROBE_SECONDS, content)
        except ModelProblem:
            found[name] = None

    try:
        async with anyio.create_task_group() as tasks:
            for name, (url, content) in asked.items():
                tasks.start_soon(ask, name, url, content)
    finally:
        await wire.aclose()
    return read_probe(model, found)


def read_probe(model: str, found: Mapping[str, Any]) -> ProbeResult:
    """The same, from the documents that the server sent."""
    running = _entry(_list(found.get("running"), "models"), model)
    listed = _entry(_list(found.get("models"), "data"), model)
    studio = _entry(_list(found.get("studio"), "data"), model)
    shown, props = found.get("show"), _dict(found.get("props"))
    window = (
        _positive_int(running, "context_length")
        or _positive_int(studio, "loaded_context_length")
        or _positive_int(_dict(props.get("default_generation_settings")), "n_ctx")
        or _positive_int(listed, "max_model_len")
        or _positive_int(_dict(listed.get("meta")), "n_ctx")
    )
    if not isinstance(shown, dict):
        return ProbeResult(context_window=window, images=_takes_images(props, studio))
    window = window or _ollama_window(shown)
    abilities = shown.get("capabilities")
    if not isinstance(abilities, list):
        return ProbeResult(context_window=window)
    return ProbeResult(
        context_window=window,
        native_tools="tools" in abilities,
        images="vision" in abilities or bool(_takes_images(props, studio)),
        thinking="thinking" in abilities,
    )


def _takes_images(props: dict[str, Any], studio: dict[str, Any]) -> bool | None:
    """Whether llama.cpp or LM Studio says the model takes images; None when neither says."""
    if isinstance(vision := _dict(props.get("modalities")).get("vision"), bool):
        return vision
    return studio["type"] == "vlm" if isinstance(studio.get("type"), str) else None


def _ollama_window(shown: dict[str, Any]) -> int:
    for line in str(shown.get("parameters", "")).splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and value.strip().isdigit():
            return int(value)
    return OLLAMA_WINDOW


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any, key: str) -> list[Any]:
    inner = _dict(value).get(key)
    return inner if isinstance(inner, list) else []


def _entry(entries: list[Any], model: str) -> dict[str, Any]:
    for each in map(_dict, entries):
        if model in {each.get("id"), each.get("name"), each.get("model")}:
            return each
    return {}


def _positive_int(values: dict[str, Any], key: str) -> int | None:
    value = values.get(key)
    return value if isinstance(value, int) and value > 0 else None


FindCredential = Callable[[str], str | None]
RememberWay = Callable[[str, str], WayMemory]

PROBED_SETTINGS = {"context_window", "native_tools", "images"}
"""If the settings have all of these, the server is not probed."""


def no_credential(_connection: str) -> str | None:
    return None


async def connect(
    reference: str,
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, ConnectionSettings] | None = None,
    credential: FindCredential = no_credential,
    remember: RememberWay | None = None,
) -> Model:
    """The model for a reference. A local server is asked about its capabilities.

    `remember` is where it is kept how a server and model take schemas.
    """
    if reference.startswith(f"{SCRIPTED}/"):
        from handrail.models.scripted_model import ScriptedModel

        return ScriptedModel.load(reference.partition("/")[2])
    if reference.partition("/")[0] == EMBEDDED:
        from handrail.models.embedded.embedded_model import embedded_model

        return embedded_model(reference, environment)
    connection, model = resolve_model(reference, all_connections(settings or {}))
    if connection.provider and (missing := missing_package(connection.provider)):
        raise ConfigProblem(missing)
    key = find_key(connection, environment, credential)
    if not key and needs_key(connection):
        raise Authenticate(
            f"There is no key for {connection.name}. Put one into {' or '.join(connection.key_env)}, "
            "or choose another model with --model."
        )
    own = (settings or {}).get(connection.name)
    asked = (
        connection.local
        and not connection.provider
        and not (own and own.set_fields.keys() >= PROBED_SETTINGS)
    )
    probed = await probe_server(connection, model, key) if asked else ProbeResult()
    capabilities = capabilities_of(connection, model, probed)
    memory = remember(connection.base_url, model) if remember else None
    if connection.provider:
        from handrail.models.pydantic_ai.adapter import PydanticAIModel

        return PydanticAIModel(connection, model, key, capabilities, memory)
    if connection.protocol == "anthropic":
        from handrail.models.wire.anthropic import AnthropicModel

        ways = StructuredOutput(("schema", "prompt"), memory)
        return AnthropicModel(connection, model, key, capabilities, ways)
    from handrail.models.wire.openai import OpenAIModel

    ways = StructuredOutput(("schema", "json", "prompt"), memory)
    return OpenAIModel(connection, model, key, capabilities, ways)


def preload_http(reference: str) -> None:
    """Import the HTTP library in a thread, while the caller waits for something else."""
    if reference.partition("/")[0] != SCRIPTED:
        Thread(target=load_http_library, daemon=True).start()


def needs_key(connection: Connection) -> bool:
    return bool(connection.key_env) and not connection.local and not connection.cloud_login


def find_key(connection: Connection, environment: Mapping[str, str], credential: FindCredential) -> str:
    """The key of a connection, from the environment or stored; empty when there is none."""
    for name in connection.key_env:
        if value := environment.get(name, "").strip():
            return value
    return (credential(connection.name) or "").strip()


def missing_package(provider: SdkProvider) -> str:
    """What to install before a provider's client library can be used; empty if nothing is missing."""
    sdk = PROVIDER_SDKS[provider]
    parent, dot, _ = sdk.module.partition(".")
    found = find_spec(parent) and (not dot or find_spec(sdk.module))
    if find_spec("pydantic_ai") and found:
        return ""
    wanted = {"pydantic-ai-slim": find_spec("pydantic_ai"), sdk.package: found}
    packages = " and ".join(name for name, there in wanted.items() if not there)
    install = install_command("providers", sdk.package)
    return f"The provider {provider!r} needs {packages}: `{install}`."


class Reachability(NamedTuple):
    """Where a model runs, or why it cannot be used."""

    place: str = ""
    problem: str = ""
    capabilities: Capabilities = Capabilities()
    """As far as known from the name."""


def check_reachable(
    reference: str,
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, ConnectionSettings],
    credential: FindCredential,
) -> Reachability:
    """Whether a model can be used, judged from names, keys and files alone."""
    name, _, model = reference.partition("/")
    if name == SCRIPTED:
        return Reachability("this machine")
    try:
        if name == EMBEDDED:
            return _check_embedded(reference, environment)
        available = all_connections(settings)
        if name not in available:
            known = ", ".join(sorted([*available, EMBEDDED]))
            return Reachability(problem=f"your settings have no connection {name!r}; known are: {known}")
        connection = available[name]
        key = find_key(connection, environment, credential)
    except (UsageProblem, ConfigProblem) as problem:
        return Reachability(problem=str(problem).rstrip("."))
    if connection.provider and (missing := missing_package(connection.provider)):
        return Reachability(problem=missing.rstrip("."))
    place = urlsplit(connection.base_url).netloc.rpartition("@")[2]
    if not key and needs_key(connection):
        variables = " or ".join(connection.key_env)
        return Reachability(place, f"there is no key for {name}; put one into {variables}")
    return Reachability(place, capabilities=capabilities_of(connection, model, ProbeResult()))


def _check_embedded(reference: str, environment: Mapping[str, str]) -> Reachability:
    from handrail.models.embedded.model_files import embedded_availability, file_for

    offer = embedded_availability(environment, file_for(reference))
    if not offer.ready:
        return Reachability("this machine", f"{offer.reference} is not on this machine yet: {offer.advice}")
    return Reachability("this machine", capabilities=Capabilities(one_action=True))
