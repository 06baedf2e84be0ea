"""Which model answers, and why: flag, session, workspace, user setting, a key, a local server, our own."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import anyio

from handrail.config.connections import ConnectionSettings
from handrail.models.connect import Credential, find_key, no_credential
from handrail.models.connections import (
    EMBEDDED,
    LOCAL_PORTS,
    SCRIPTED,
    Connection,
    connections,
    resolve,
)
from handrail.models.embedded.files import file_for
from handrail.models.embedded.offer import Offer, find_embedded
from handrail.models.known import DEFAULTS
from handrail.protocol.errors import ModelProblem, NoModel

SERVER_SECONDS = 0.5

DOORS = """There is no model to answer. Three ways to one:
  - a key: put one into {keys}
  - a server: start Ollama, llama.cpp, LM Studio or vLLM on this machine, or add a connection to your settings
  - a small model of Handrail's own: {embedded}"""


class Wishes(NamedTuple):
    """Models asked for, one place each; empty where nobody said anything."""

    flag: str = ""
    session: str = ""
    before: str = ""
    """What answered in the session last: resuming does not change the model."""
    workspace: str = ""
    user: str = ""
    fallbacks: tuple[str, ...] = ()
    """Tried in order when the chosen one cannot answer."""


class Choice(NamedTuple):
    """A model and the reason for it, in words."""

    reference: str
    why: str
    fallbacks: tuple[str, ...] = ()


FindServer = Callable[[Mapping[str, Connection]], Awaitable[str | None]]
FindEmbedded = Callable[[Mapping[str, str]], Offer]
PLACES = {
    "flag": "named on the command line",
    "session": "chosen in this session",
    "before": "it answered here before",
    "workspace": "set for this workspace",
    "user": "set in your settings",
}


class Server(NamedTuple):
    """A server on this machine that answers, and the models that it can answer with."""

    name: str
    models: tuple[str, ...]

    @property
    def references(self) -> list[str]:
        return [f"{self.name}/{model}" for model in self.models]


async def find_servers(available: Mapping[str, Connection]) -> list[Server]:
    """The local servers that answer; all are asked at once."""
    from handrail.models.wire import Wire

    found: dict[str, Server] = {}

    async def ask(name: str) -> None:
        wire = Wire(available[name], key="")
        try:
            names = await wire.model_names(SERVER_SECONDS)
        except ModelProblem:
            return
        finally:
            await wire.aclose()
        found[name] = Server(name, tuple(each for each in names if "embed" not in each.lower()))

    async with anyio.create_task_group() as tasks:
        for name in LOCAL_PORTS:
            tasks.start_soon(ask, name)
    return [found[name] for name in LOCAL_PORTS if name in found]


async def find_server(available: Mapping[str, Connection]) -> str | None:
    """The first model of the first local server that has one."""
    servers = await find_servers(available)
    return next((reference for server in servers for reference in server.references), None)


async def choose(
    wishes: Wishes,
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, ConnectionSettings] | None = None,
    credential: Credential = no_credential,
    find: FindServer = find_server,
    embedded: FindEmbedded = find_embedded,
) -> Choice:
    """The main model. Raises NoModel, with the ways out, when there is nothing to answer with."""
    available = connections(settings or {})
    asked = _asked(wishes, available)
    if asked is not None:
        return asked
    fallbacks = _fallbacks(wishes, available)
    for name, model in DEFAULTS.items():
        if find_key(available[name], environment, credential):
            held = [each for each in available[name].key_env if environment.get(each, "").strip()]
            why = f"there is a key in {held[0]}" if held else f"there is a stored key for {name}"
            return Choice(f"{name}/{model}", why, fallbacks)
    server = await find(available)
    if server is not None:
        return Choice(server, f"{server.partition('/')[0]} answers on this machine", fallbacks)
    own = embedded(environment)
    if own.ready:
        return Choice(own.reference, "no key and no local server found", fallbacks)
    keys = ", ".join(available[name].key_env[0] for name in DEFAULTS)
    raise NoModel(DOORS.format(keys=keys, embedded=own.advice))


def _asked(wishes: Wishes, available: Mapping[str, Connection]) -> Choice | None:
    for place, words in PLACES.items():
        reference = getattr(wishes, place)
        if reference:
            return Choice(full_name(reference, available), words, _fallbacks(wishes, available))
    return None


def _fallbacks(wishes: Wishes, available: Mapping[str, Connection]) -> tuple[str, ...]:
    return tuple(full_name(each, available) for each in wishes.fallbacks)


def full_name(reference: str, available: Mapping[str, Connection]) -> str:
    """`connection/name` of what a user's words mean; raises UsageProblem."""
    if reference.startswith(f"{SCRIPTED}/"):
        return reference
    if reference.strip().partition("/")[0] == EMBEDDED:
        return f"{EMBEDDED}/{file_for(reference.strip()).model}"
    return resolve(reference, available).reference
