"""Choose the main model: flag, session, settings, a key, a local server, the embedded model."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import anyio

from handrail.config.settings import ConnectionSettings
from handrail.models.connect import FindCredential, find_key, no_credential
from handrail.models.embedded.model_files import Availability, embedded_availability, file_for
from handrail.models.providers import (
    DEFAULT_MODELS,
    EMBEDDED,
    LOCAL_PORTS,
    SCRIPTED,
    Connection,
    all_connections,
    resolve_model,
)
from handrail.protocol.errors import ModelProblem, NoModel

NO_MODEL_HELP = """There is no model to answer. You can use one of:
  - a key: put one into {keys}
  - a server: start Ollama, llama.cpp, LM Studio or vLLM on this machine, or add a connection to your settings
{connections}  - a small model of Handrail's own: {embedded}"""


class RequestedModels(NamedTuple):
    """The models that each source asks for; empty where it asks for none."""

    flag: str = ""
    session: str = ""
    before: str = ""
    """The model that last answered in the session, so resuming does not change it."""
    workspace: str = ""
    user: str = ""
    fallbacks: tuple[str, ...] = ()


class ModelChoice(NamedTuple):
    reference: str
    why: str
    fallbacks: tuple[str, ...] = ()


FindServer = Callable[[Mapping[str, Connection]], Awaitable[str | None]]
FindEmbedded = Callable[[Mapping[str, str]], Availability]
REASONS = {
    "flag": "named on the command line",
    "session": "chosen in this session",
    "before": "it answered here before",
    "workspace": "set for this workspace",
    "user": "set in your settings",
}


class LocalServer(NamedTuple):
    """A server on this machine, and its models."""

    name: str
    models: tuple[str, ...]

    @property
    def references(self) -> list[str]:
        return [f"{self.name}/{model}" for model in self.models]


async def find_local_servers(available: Mapping[str, Connection]) -> list[LocalServer]:
    """The local servers that respond; all are asked at once."""
    from handrail.models.wire.transport import Transport

    found: dict[str, LocalServer] = {}

    async def ask(name: str) -> None:
        wire = Transport(available[name], key="")
        try:
            names = await wire.model_names(seconds=0.5)
        except ModelProblem:
            return
        finally:
            await wire.aclose()
        found[name] = LocalServer(name, tuple(each for each in names if "embed" not in each.lower()))

    async with anyio.create_task_group() as tasks:
        for name in LOCAL_PORTS:
            tasks.start_soon(ask, name)
    return [found[name] for name in LOCAL_PORTS if name in found]


async def find_local_server(available: Mapping[str, Connection]) -> str | None:
    """The first model of the first local server that has one."""
    servers = await find_local_servers(available)
    return next((reference for server in servers for reference in server.references), None)


async def choose_model(
    requested: RequestedModels,
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, ConnectionSettings] | None = None,
    credential: FindCredential = no_credential,
    find: FindServer = find_local_server,
    embedded: FindEmbedded = embedded_availability,
) -> ModelChoice:
    """The main model. Raises NoModel, with advice, when there is none."""
    available = all_connections(settings or {})
    fallbacks = tuple(full_model_name(each, available) for each in requested.fallbacks)
    for source, why in REASONS.items():
        if reference := getattr(requested, source):
            return ModelChoice(full_model_name(reference, available), why, fallbacks)
    for name, model in DEFAULT_MODELS.items():
        if find_key(available[name], environment, credential):
            held = [each for each in available[name].key_env if environment.get(each, "").strip()]
            why = f"there is a key in {held[0]}" if held else f"there is a stored key for {name}"
            return ModelChoice(f"{name}/{model}", why, fallbacks)
    server = await find(available)
    if server is not None:
        return ModelChoice(server, f"{server.partition('/')[0]} answers on this machine", fallbacks)
    own = embedded(environment)
    if own.ready:
        return ModelChoice(own.reference, "no key and no local server found", fallbacks)
    keys = ", ".join(available[name].key_env[0] for name in DEFAULT_MODELS)
    added = [name for name in settings or {} if name not in all_connections({})]
    choose = "".join(
        f"  - your connection {name}: `handrail model {name}/MODEL` chooses its model\n" for name in added
    )
    raise NoModel(NO_MODEL_HELP.format(keys=keys, connections=choose, embedded=own.advice))


def full_model_name(reference: str, available: Mapping[str, Connection]) -> str:
    """The full `connection/name` for what a user wrote; raises UsageProblem."""
    if reference.startswith(f"{SCRIPTED}/"):
        return reference
    if reference.strip().partition("/")[0] == EMBEDDED:
        return f"{EMBEDDED}/{file_for(reference.strip()).model}"
    return resolve_model(reference, available).reference
