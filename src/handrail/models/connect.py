"""From a reference to a model that answers."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Thread

from handrail.config.connections import ConnectionSettings
from handrail.models.base import Model
from handrail.models.capabilities import Probed, describe, probe
from handrail.models.connections import EMBEDDED, SCRIPTED, Connection, connections, resolve
from handrail.protocol.errors import Authenticate

HTTP = "httpcore2"

Credential = Callable[[str], str | None]
"""The stored key of a connection by its name, or None."""

ASKED_OF_A_SERVER = {"context_window", "native_tools", "images"}
"""Where the settings say all of this, there is nothing to ask."""


def no_credential(_connection: str) -> str | None:
    """For callers that keep no keys."""
    return None


async def connect(
    reference: str,
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, ConnectionSettings] | None = None,
    credential: Credential = no_credential,
) -> Model:
    """The model that a reference names, ready to be asked. A local server is asked what it can do."""
    if reference.startswith(f"{SCRIPTED}/"):
        from handrail.models.scripted import ScriptedModel

        return ScriptedModel.load(reference.partition("/")[2])
    if reference.partition("/")[0] == EMBEDDED:
        from handrail.models.embedded.model import embedded_model
        from handrail.models.one_action import OneActionModel

        return OneActionModel(embedded_model(reference, environment))
    connection, model = resolve(reference, connections(settings or {}))
    key = find_key(connection, environment, credential)
    if not key and wants_key(connection):
        raise Authenticate(
            f"There is no key for {connection.name}. Put one into {' or '.join(connection.key_env)}, "
            "or choose another model with --model."
        )
    told = (settings or {}).get(connection.name)
    asked = connection.local and not (told and told.model_fields_set >= ASKED_OF_A_SERVER)
    probed = await probe(connection, model, key) if asked else Probed()
    capabilities = describe(connection, model, probed)
    if connection.protocol == "anthropic":
        from handrail.models.anthropic import AnthropicModel

        return AnthropicModel(connection, model, key, capabilities)
    from handrail.models.openai import OpenAIModel

    return OpenAIModel(connection, model, key, capabilities)


def get_ready(reference: str) -> None:
    """Import what asking will need, beside whatever the caller waits for meanwhile, such as the disk."""
    if reference.partition("/")[0] != SCRIPTED and HTTP not in sys.modules:
        Thread(target=import_module, args=(HTTP,), daemon=True).start()


def wants_key(connection: Connection) -> bool:
    """Whether nothing is answered without a key."""
    return bool(connection.key_env) and not connection.local


def find_key(connection: Connection, environment: Mapping[str, str], credential: Credential) -> str:
    """The key of a connection: the environment first, then the stored one; empty when there is none."""
    for name in connection.key_env:
        if value := environment.get(name, "").strip():
            return value
    return (credential(connection.name) or "").strip()
