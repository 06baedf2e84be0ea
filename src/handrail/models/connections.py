"""Connections: the named places where models answer, built in and of the user's own."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from handrail.config.connections import ConnectionSettings, Wire
from handrail.models.base import Price
from handrail.models.known import BARE_NAMES, DEFAULTS
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.record import Record

SCRIPTED = "scripted"
"""Not a connection but the name before the slash of a model that answers from a file."""

EMBEDDED = "embedded"
"""The same for a model that runs in a child process of ours."""

LOCAL_PORTS = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234, "vllm": 8000}
"""Servers on this machine that are looked for, in this order."""

LOCAL_PRICE = Price(input=0.0, output=0.0)


class Connection(Record):
    """Where and how to ask. What a server cannot take is said here as data, never found out by trial."""

    name: str
    protocol: Wire
    base_url: str
    key_env: tuple[str, ...] = ()
    key_header: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    query: Mapping[str, str] = MappingProxyType({})
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    prompt_progress: bool = False
    """Whether the server tells, when asked, how far it is with reading the request."""
    native_tools: bool = True
    schema_output: bool | None = None
    images: bool | None = None
    effort: bool | Literal["known"] = False
    """Whether its models are told how much to think; `known`: those that are known to take it."""
    context_window: int | None = None
    price: Price | None = None
    prices_as: str = ""
    """The provider's name in the bundled price list; empty: found by the model's name."""

    @property
    def local(self) -> bool:
        """Whether the server runs on this machine, so that it needs no key and costs nothing."""
        return (urlsplit(self.base_url).hostname or "") in {"127.0.0.1", "localhost", "::1"}


BUILT_IN: dict[str, Connection] = {
    each.name: each
    for each in (
        Connection(
            name="anthropic",
            protocol="anthropic",
            base_url="https://api.anthropic.com",
            key_env=("ANTHROPIC_API_KEY",),
            schema_output=True,
            effort="known",
            prices_as="anthropic",
        ),
        Connection(
            name="openai",
            protocol="openai",
            base_url="https://api.openai.com/v1",
            key_env=("OPENAI_API_KEY",),
            output_limit="max_completion_tokens",
            schema_output=True,
            effort="known",
            prices_as="openai",
        ),
        Connection(
            name="xai",
            protocol="openai",
            base_url="https://api.x.ai/v1",
            key_env=("XAI_API_KEY",),
            schema_output=True,
            effort="known",
            prices_as="x-ai",
        ),
        Connection(
            name="openrouter",
            protocol="openai",
            base_url="https://openrouter.ai/api/v1",
            key_env=("OPENROUTER_API_KEY",),
            effort="known",
            prices_as="openrouter",
        ),
        Connection(
            name="gemini",
            protocol="openai",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            schema_output=True,
            effort="known",
            prices_as="google",
        ),
        *(
            Connection(
                name=name, protocol="openai", base_url=f"http://127.0.0.1:{port}/v1", schema_output=True
            )
            for name, port in LOCAL_PORTS.items()
        ),
    )
}


def connections(settings: Mapping[str, ConnectionSettings]) -> dict[str, Connection]:
    """All connections by name: the built-in ones, changed and joined by the user's."""
    return BUILT_IN | {name: connection(name, each) for name, each in settings.items()}


def connection(name: str, settings: ConnectionSettings) -> Connection:
    """The connection that settings under this name describe."""
    if "/" in name or name in {"", SCRIPTED, EMBEDDED}:
        raise ConfigProblem(f"{name!r} cannot be the name of a connection: choose a word without a slash.")
    changed: dict[str, Any] = {each: getattr(settings, each) for each in settings.model_fields_set}
    if settings.price is not None:
        changed["price"] = Price(**settings.price.model_dump())
    base = BUILT_IN.get(name) or Connection(name=name, protocol=settings.protocol, base_url="")
    result = base.changed(**changed)
    if urlsplit(result.base_url).scheme not in {"http", "https"} or not urlsplit(result.base_url).hostname:
        raise ConfigProblem(
            f"connection {name!r} needs a base_url that begins with http:// or https://, "
            f"such as https://host/v1; it has {result.base_url!r}."
        )
    return result.changed(base_url=result.base_url.rstrip("/"))


class Asked(NamedTuple):
    """Who was asked, for the sentence that the user reads."""

    connection: str
    model: str
    key_env: tuple[str, ...]
    local: bool
    effort: bool = False
    """It was told how much to think."""

    @property
    def key_advice(self) -> str:
        place = " or ".join(self.key_env) if self.key_env else f"the key of connection {self.connection!r}"
        return f"Put a working key into {place}, or choose another model with --model."


class Resolved(NamedTuple):
    """A reference taken apart."""

    connection: Connection
    model: str

    @property
    def reference(self) -> str:
        return f"{self.connection.name}/{self.model}"


def resolve(reference: str, available: Mapping[str, Connection]) -> Resolved:
    """The connection and model that a user's words mean: `connection/model`, or a well-known bare name."""
    text = reference.strip()
    name, slash, model = text.partition("/")
    if slash and model and name in available:
        return Resolved(connection=available[name], model=model)
    if text in available:
        if text in DEFAULTS:
            return Resolved(connection=available[text], model=DEFAULTS[text])
        raise UsageProblem(f"{text!r} is a connection; say which of its models: {text}/MODEL.")
    for pattern, owner in BARE_NAMES:
        if re.match(pattern, text) and not slash:
            return Resolved(connection=available[owner], model=text)
    known = ", ".join(sorted([*available, SCRIPTED, EMBEDDED]))
    raise UsageProblem(
        f"{reference!r} names no model. Write CONNECTION/MODEL, where CONNECTION is one of {known}; "
        "names that begin with claude-, gpt-, o1 to o9, grok- or gemini- can stand alone."
    )
