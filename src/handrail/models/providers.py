"""Providers and connections: endpoints, default models, and facts known from a model's name."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import UNSET
from msgspec.structs import asdict, replace

from handrail.config.settings import ConnectionSettings, SdkProvider, Wire
from handrail.models.model import Price
from handrail.protocol.errors import ConfigProblem, UsageProblem
from handrail.protocol.values import Value

DEFAULT_MODELS: dict[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6.1-terra",
    "xai": "grok-4.7",
    "openrouter": "anthropic/claude-sonnet-5.5",
    "gemini": "gemini-3.8-flash",
}
"""A connection's default model; keys are looked for in this order."""

BARE_NAMES: tuple[tuple[str, str], ...] = (
    (r"claude-", "anthropic"),
    (r"(gpt|chatgpt)-", "openai"),
    (r"o\d", "openai"),
    (r"grok-", "xai"),
    (r"gemini-", "gemini"),
)


class KnownModel(NamedTuple):
    """Facts about all models whose name matches."""

    context_window: int
    images: bool
    thinking: bool
    effort: bool = False


KNOWN_MODELS: tuple[tuple[str, KnownModel], ...] = (
    (
        r"claude-[a-z]+-(4[-.][6-9]|[5-9])",
        KnownModel(context_window=1_000_000, images=True, thinking=True, effort=True),
    ),
    (r"claude-opus-4[-.]5", KnownModel(context_window=200_000, images=True, thinking=False, effort=True)),
    (r"claude-", KnownModel(context_window=200_000, images=True, thinking=False)),
    (r"gpt-4\.1", KnownModel(context_window=1_000_000, images=True, thinking=False)),
    (r"gpt-4o", KnownModel(context_window=128_000, images=True, thinking=False)),
    (r"gpt-5\.4-(mini|nano)", KnownModel(context_window=400_000, images=True, thinking=True, effort=True)),
    (r"gpt-5\.3$", KnownModel(context_window=128_000, images=True, thinking=True, effort=True)),
    (r"gpt-5\.5", KnownModel(context_window=1_000_000, images=True, thinking=True, effort=True)),
    (r"gpt-(5\.[4-9]|[6-9])", KnownModel(context_window=1_050_000, images=True, thinking=True, effort=True)),
    (r"gpt-5", KnownModel(context_window=400_000, images=True, thinking=True, effort=True)),
    (r"o[134](-|$)", KnownModel(context_window=128_000, images=False, thinking=True, effort=True)),
    (r"grok-4\.[5-9]", KnownModel(context_window=500_000, images=True, thinking=True, effort=True)),
    (r"grok-4-(1-)?fast", KnownModel(context_window=2_000_000, images=True, thinking=True)),
    (r"grok-(code|build)", KnownModel(context_window=256_000, images=False, thinking=True)),
    (r"grok-[3-9]", KnownModel(context_window=131_072, images=False, thinking=True)),
    (r"gemini-(2\.5|3|4)", KnownModel(context_window=1_000_000, images=True, thinking=True, effort=True)),
)
"""The first match wins. Only families: single models are in the bundled price list."""

NO_EFFORT = re.compile(r"gpt-[\d.]+-(chat|pro)|o1-(mini|preview)")
"""Models of these families that refuse an effort, or all but one."""
NO_EFFORT_WITH_TOOLS = re.compile(r"gpt-(5\.[4-9]|[6-9])")
"""Models whose chat completions take an effort, or function tools, but not both."""


def known_model(model: str) -> KnownModel | None:
    """Facts known from the name alone; an owner (`anthropic/claude-...`) is ignored."""
    name = bare_name(model)
    for pattern, facts in KNOWN_MODELS:
        if re.match(pattern, name):
            return facts._replace(effort=facts.effort and not NO_EFFORT.match(name))
    return None


def bare_name(model: str) -> str:
    return model.rpartition("/")[2].lower()


KEY_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"sk-ant-", "anthropic"),
    (r"sk-or-", "openrouter"),
    (r"sk-(proj|svcacct|admin|None)-", "openai"),
    (r"sk-\w+T3BlbkFJ", "openai"),
    (r"xai-", "xai"),
    (r"AIza|AQ\.", "gemini"),
)


def provider_of_key(key: str) -> str:
    """The connection that a key belongs to; empty if its shape does not tell."""
    return next((owner for pattern, owner in KEY_PATTERNS if re.match(pattern, key)), "")


SCRIPTED, EMBEDDED = "scripted", "embedded"
"""Prefixes of models that answer from a file, and of those that run in our own server process."""
LOCAL_PORTS = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234, "vllm": 8000}
"""Local servers to look for, in this order."""
LOCAL_PRICE = Price(input=0.0, output=0.0)


class ProviderSdk(NamedTuple):
    """A provider's client library, and what its connections have if the settings do not say."""

    package: str
    """As pip knows it."""
    module: str
    base_url: str
    key_env: tuple[str, ...]
    prices_as: str
    clouds: bool = False
    """Has logins of its own, and regions."""
    adds_key: bool = True
    """The library adds the key to requests; otherwise it is sent as `Authorization: Bearer`."""


PROVIDER_SDKS: dict[SdkProvider, ProviderSdk] = {
    "bedrock": ProviderSdk(
        package="boto3",
        module="boto3",
        base_url="https://bedrock-runtime.{region}.amazonaws.com",
        key_env=("AWS_BEARER_TOKEN_BEDROCK",),
        prices_as="aws",
        clouds=True,
        adds_key=False,
    ),
    "cohere": ProviderSdk("cohere", "cohere", "https://api.cohere.com", ("CO_API_KEY",), "cohere"),
    "google": ProviderSdk(
        package="google-genai",
        module="google.genai",
        base_url="https://generativelanguage.googleapis.com",
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        prices_as="google",
    ),
    "groq": ProviderSdk("groq", "groq", "https://api.groq.com", ("GROQ_API_KEY",), "groq"),
    "mistral": ProviderSdk(
        package="mistralai",
        module="mistralai",
        base_url="https://api.mistral.ai",
        key_env=("MISTRAL_API_KEY",),
        prices_as="mistral",
    ),
    "vertex": ProviderSdk(
        package="google-genai",
        module="google.genai",
        base_url="https://{region}-aiplatform.googleapis.com",
        key_env=("VERTEX_API_KEY",),
        prices_as="google",
        clouds=True,
    ),
}


class Connection(Value):
    """A server and how to talk to it. Only how it takes schemas is found out by trial."""

    name: str
    protocol: Wire
    base_url: str
    provider: SdkProvider | None = None
    """Its client library is used in place of `protocol`."""
    region: str = ""
    project: str = ""
    cloud_login: bool = False
    key_env: tuple[str, ...] = ()
    key_header: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    query: Mapping[str, str] = MappingProxyType({})
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    prompt_progress: bool = False
    """The server reports its progress in reading the request."""
    native_tools: bool = True
    schema_output: bool | None = None
    """False: no schema is ever sent."""
    images: bool | None = None
    effort: bool | Literal["known"] = False
    """Models are told how much to think; `known`: only those known to take it."""
    context_window: int | None = None
    price: Price | None = None
    prices_as: str = ""
    """The provider's name in the bundled price list; empty: found by the model's name."""

    @property
    def local(self) -> bool:
        """Whether the server runs on this machine, so it needs no key and costs nothing."""
        return (urlsplit(self.base_url).hostname or "") in {"127.0.0.1", "localhost", "::1"}


def _built_in(name: str, base_url: str, *key_env: str, **more: Any) -> Connection:
    usual: dict[str, Any] = {"protocol": "openai", "schema_output": True}
    if key_env:
        usual |= {"effort": "known", "prices_as": name}
    return Connection(name=name, base_url=base_url, key_env=key_env, **(usual | more))


BUILT_IN_CONNECTIONS: dict[str, Connection] = {
    each.name: each
    for each in (
        _built_in("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", protocol="anthropic"),
        _built_in(
            "openai", "https://api.openai.com/v1", "OPENAI_API_KEY", output_limit="max_completion_tokens"
        ),
        _built_in("xai", "https://api.x.ai/v1", "XAI_API_KEY", prices_as="x-ai"),
        _built_in("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", schema_output=None),
        _built_in(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            *("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            prices_as="google",
        ),
        *(_built_in(name, f"http://127.0.0.1:{port}/v1") for name, port in LOCAL_PORTS.items()),
    )
}


def all_connections(settings: Mapping[str, ConnectionSettings]) -> dict[str, Connection]:
    """All connections by name: built-in ones, overridden and extended by the settings."""
    return BUILT_IN_CONNECTIONS | {name: build_connection(name, each) for name, each in settings.items()}


def build_connection(name: str, settings: ConnectionSettings) -> Connection:
    if "/" in name or name in {"", SCRIPTED, EMBEDDED}:
        raise ConfigProblem(f"{name!r} cannot be the name of a connection: choose a name without a slash.")
    changed = settings.set_fields
    if settings.price is not UNSET:
        changed["price"] = Price(**asdict(settings.price))
    base = BUILT_IN_CONNECTIONS.get(name) or Connection(name=name, protocol="openai", base_url="")
    if settings.provider is not UNSET:
        base = _provider_connection(name, settings.provider, changed)
    result = replace(base, **changed)
    if urlsplit(result.base_url).scheme not in {"http", "https"} or not urlsplit(result.base_url).hostname:
        raise ConfigProblem(
            f"connection {name!r} needs a base_url that begins with http:// or https://, "
            f"such as https://host/v1; it has {result.base_url!r}."
        )
    return replace(result, base_url=result.base_url.rstrip("/"))


def _provider_connection(name: str, provider: SdkProvider, changed: Mapping[str, Any]) -> Connection:
    """What a connection of this provider has unless its settings change it."""
    sdk = PROVIDER_SDKS[provider]
    region = changed.get("region", "")
    if sdk.clouds and not region and "base_url" not in changed:
        raise ConfigProblem(f'connection {name!r} needs a region, such as region = "eu-central-1".')
    base_url = sdk.base_url.format(region=region).replace("//global-", "//")
    return Connection(
        name=name, protocol="openai", base_url=base_url, key_env=sdk.key_env, prices_as=sdk.prices_as
    )


class RequestTarget(NamedTuple):
    """Who was asked, for error messages."""

    connection: str
    model: str
    key_env: tuple[str, ...]
    local: bool
    effort: bool = False
    structured: bool = False
    """The answer was asked for by a schema."""

    @property
    def key_advice(self) -> str:
        place = " or ".join(self.key_env) if self.key_env else f"the key of connection {self.connection!r}"
        return f"Put a working key into {place}, or choose another model with --model."


class ResolvedModel(NamedTuple):
    connection: Connection
    model: str

    @property
    def reference(self) -> str:
        return f"{self.connection.name}/{self.model}"


def resolve_model(reference: str, available: Mapping[str, Connection]) -> ResolvedModel:
    """The connection and model for `connection/model`, or for a well-known bare name."""
    text = reference.strip()
    name, slash, model = text.partition("/")
    if slash and model and name in available:
        return ResolvedModel(connection=available[name], model=model)
    if text in available:
        if text in DEFAULT_MODELS:
            return ResolvedModel(connection=available[text], model=DEFAULT_MODELS[text])
        raise UsageProblem(f"{text!r} is a connection; name one of its models: {text}/MODEL.")
    for pattern, owner in BARE_NAMES:
        if re.match(pattern, text) and not slash:
            return ResolvedModel(connection=available[owner], model=text)
    known = ", ".join(sorted([*available, SCRIPTED, EMBEDDED]))
    raise UsageProblem(
        f"{reference!r} names no model. Write CONNECTION/MODEL, where CONNECTION is one of {known}; "
        "names that begin with claude-, gpt-, o1 to o9, grok- or gemini- can stand alone."
    )
