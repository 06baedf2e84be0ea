"""What a model can do: the user's settings, then the server itself if local, then what is known by name."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import anyio

from handrail.models.base import Capabilities
from handrail.models.connections import LOCAL_PRICE, Connection
from handrail.models.known import NO_EFFORT_WITH_TOOLS, bare, known
from handrail.models.prices import listed_window
from handrail.models.wire import Wire
from handrail.protocol.errors import ModelProblem

PROBE_SECONDS = 1.0
LOCAL_WINDOW = 8_192
HOSTED_WINDOW = 32_768
OLLAMA_WINDOW = 4_096
"""What Ollama gives a model unless told otherwise; it cuts longer prompts without a word."""


class Probed(NamedTuple):
    """What a local server says of a model; None where it says nothing."""

    context_window: int | None = None
    native_tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None


def describe(connection: Connection, model: str, probed: Probed) -> Capabilities:
    """The capabilities that all sources together give."""
    facts = known(model)
    window = connection.context_window or probed.context_window or (facts and facts.context_window)
    if window is None:
        window = LOCAL_WINDOW if connection.local else listed_window(connection.name, model) or HOSTED_WINDOW
    return Capabilities(
        context_window=window,
        native_tools=connection.native_tools and probed.native_tools is not False,
        schema_output=bool(connection.schema_output),
        images=_first(connection.images, probed.images, facts and facts.images),
        thinking=_first(probed.thinking, facts and facts.thinking),
        effort=connection.effort is True or (connection.effort == "known" and bool(facts and facts.effort)),
        effort_with_tools=not NO_EFFORT_WITH_TOOLS.match(bare(model)),
        price=connection.price or (LOCAL_PRICE if connection.local else None),
    )


def _first(*values: bool | None) -> bool:
    return next((value for value in values if value is not None), False)


async def probe(connection: Connection, model: str, key: str) -> Probed:
    """What the server of a local connection says: llama.cpp, vLLM, LM Studio and Ollama are understood."""
    wire = Wire(connection, key)
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


def read_probe(model: str, found: Mapping[str, Any]) -> Probed:
    """The same out of the documents that the server gave."""
    running = _entry(_list(found.get("running"), "models"), model)
    listed = _entry(_list(found.get("models"), "data"), model)
    studio = _entry(_list(found.get("studio"), "data"), model)
    shown = found.get("show") if isinstance(found.get("show"), dict) else None
    window = (
        _whole(running, "context_length")
        or _whole(studio, "loaded_context_length")
        or _whole(_dict(_dict(found.get("props")).get("default_generation_settings")), "n_ctx")
        or _whole(listed, "max_model_len")
        or _whole(_dict(listed.get("meta")), "n_ctx")
    )
    if shown is None:
        return Probed(context_window=window, images=_sees(_dict(found.get("props")), studio))
    abilities = shown.get("capabilities")
    if not isinstance(abilities, list):
        return Probed(context_window=window or _ollama_window(shown))
    return Probed(
        context_window=window or _ollama_window(shown),
        native_tools="tools" in abilities,
        images="vision" in abilities or bool(_sees(_dict(found.get("props")), studio)),
        thinking="thinking" in abilities,
    )


def _sees(props: dict[str, Any], studio: dict[str, Any]) -> bool | None:
    """Whether llama.cpp or LM Studio says that the model takes images; None when neither says anything."""
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


def _whole(values: dict[str, Any], key: str) -> int | None:
    value = values.get(key)
    return value if isinstance(value, int) and value > 0 else None
