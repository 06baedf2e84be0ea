"""pydantic-ai's model for a connection: its provider's client library, with our HTTP and our key alone.

Addresses and keys are always given, so that no library takes one from the environment, and none of them
repeats a request.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from handrail.config.settings import SdkProvider
from handrail.models.providers import Connection
from handrail.models.pydantic_ai.exchange import EVENTS, http_client, send_botocore
from handrail.protocol.errors import ConfigProblem

NO_KEY = "none"
"""A server on this machine needs none, but the libraries want one."""
BINARY_EVENTS = "application/vnd.amazon.eventstream"


class SdkModel(NamedTuple):
    """A model of pydantic-ai, and what its answers are made of."""

    model: Any
    answers: str = EVENTS


def sdk_model(connection: Connection, model: str, key: str) -> SdkModel:
    """The model of a connection that names a provider. Nothing is sent."""
    if connection.provider is None:
        raise ConfigProblem(f"connection {connection.name!r} names no provider.")
    return BUILDERS[connection.provider](connection, model, key or NO_KEY)


def _groq(connection: Connection, model: str, key: str) -> SdkModel:
    import httpx
    from groq import AsyncGroq
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    client = AsyncGroq(
        api_key=key, base_url=connection.base_url, max_retries=0, http_client=http_client(httpx)
    )
    return SdkModel(GroqModel(model, provider=GroqProvider(groq_client=client)))


def _mistral(connection: Connection, model: str, key: str) -> SdkModel:
    import httpx2
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    provider = MistralProvider(api_key=key, base_url=connection.base_url, http_client=http_client(httpx2))
    return SdkModel(MistralModel(model, provider=provider))


def _cohere(connection: Connection, model: str, key: str) -> SdkModel:
    import httpx
    from cohere import AsyncClientV2
    from pydantic_ai.models.cohere import CohereModel
    from pydantic_ai.providers.cohere import CohereProvider

    client = AsyncClientV2(
        api_key=key, base_url=connection.base_url, max_retries=0, httpx_client=http_client(httpx)
    )
    return SdkModel(CohereModel(model, provider=CohereProvider(cohere_client=client)))


def _google(connection: Connection, model: str, key: str) -> SdkModel:
    import httpx2

    # An unknown finish reason is ours to report.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"google\.genai")
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key=key, base_url=connection.base_url, http_client=http_client(httpx2))
    return SdkModel(GoogleModel(model, provider=provider))


def _vertex(connection: Connection, model: str, key: str) -> SdkModel:
    import httpx2

    warnings.filterwarnings("ignore", category=UserWarning, module=r"google\.genai")
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google_cloud import GoogleCloudProvider

    access: dict[str, Any] = {"api_key": key}
    if connection.cloud_login and key == NO_KEY:
        if not connection.project:
            raise ConfigProblem(f"connection {connection.name!r} needs the project of its cloud_login.")
        access = {"project": connection.project, "location": connection.region}
    client = http_client(httpx2)
    provider = GoogleCloudProvider(**access, base_url=connection.base_url, http_client=client)
    return SdkModel(GoogleModel(model, provider=provider))


def _bedrock(connection: Connection, model: str, key: str) -> SdkModel:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    # Without a login of the cloud nothing is signed, and our transport adds the key.
    signature = {} if connection.cloud_login and key == NO_KEY else {"signature_version": UNSIGNED}
    client = boto3.Session(region_name=connection.region or "us-east-1").client(
        "bedrock-runtime",
        endpoint_url=connection.base_url,
        config=Config(retries={"total_max_attempts": 1}, **signature),
    )
    client.meta.events.register_first("before-send.bedrock-runtime", send_botocore)
    return SdkModel(
        BedrockConverseModel(model, provider=BedrockProvider(bedrock_client=client)), BINARY_EVENTS
    )


BUILDERS: dict[SdkProvider, Callable[[Connection, str, str], SdkModel]] = {
    "bedrock": _bedrock,
    "cohere": _cohere,
    "google": _google,
    "groq": _groq,
    "mistral": _mistral,
    "vertex": _vertex,
}
