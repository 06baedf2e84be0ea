"""What the adapter tests share: the same answer over each wire, and a model that talks to a fake server."""

import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from handrail.config.settings import ConnectionSettings, SdkProvider, Wire
from handrail.models.connect import connect
from handrail.models.model import Deadlines, Model, Request, ToolSpec, UserTurn
from tests.models import sdk_formats
from tests.models.fake_server import FakeServer, Said, anthropic_bytes, openai_bytes

KEY = "sk-test-0123456789abcdef"
TOOLS = (
    ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("list", "List a folder.", {"type": "object", "properties": {}}),
)


class WireFormat(NamedTuple):
    """One wire format under test."""

    name: str
    path: str
    write: Callable[..., bytes]
    provider: SdkProvider | None = None

    @property
    def protocol(self) -> Wire:
        return "anthropic" if self.name == "anthropic" else "openai"

    def after(self, body: bytes, marker: bytes) -> int:
        """Where the event ends that holds the marker."""
        at = body.index(marker)
        if self.provider != "bedrock":
            return body.index(b"\n\n", at) + 2
        end = 0
        while end <= at:
            end += struct.unpack_from("!I", body, end)[0]
        return end


FORMATS = (
    WireFormat("openai", "/v1", openai_bytes),
    WireFormat("anthropic", "", anthropic_bytes),
)
SDK_FORMATS = (
    WireFormat("groq", "", sdk_formats.groq_bytes, "groq"),
    WireFormat("mistral", "", sdk_formats.mistral_bytes, "mistral"),
    WireFormat("cohere", "", sdk_formats.cohere_bytes, "cohere"),
    WireFormat("google", "", sdk_formats.google_bytes, "google"),
    WireFormat("bedrock", "", sdk_formats.bedrock_bytes, "bedrock"),
)
"""Those whose provider's client library is used. Vertex AI is Google's library at another address."""


@asynccontextmanager
async def model_at(
    server: FakeServer, wire: WireFormat, model: str = "test-model", key: str = KEY
) -> AsyncIterator[Model]:
    """A model of connection `mine` whose server is the fake one."""
    way: dict[str, Any] = {"protocol": wire.name}
    if wire.provider:
        way = {"provider": wire.provider, "region": "eu-central-1"}
    settings = ConnectionSettings(
        **way,
        base_url=f"{server.url}{wire.path}",
        key_env=("MINE_API_KEY",),
        context_window=9000,
    )
    connected = await connect(f"mine/{model}", environment={"MINE_API_KEY": key}, settings={"mine": settings})
    server.requests.clear()
    try:
        yield connected
    finally:
        await connected.aclose()


def request(deadlines: Deadlines | None = None) -> Request:
    """A small request with two tools."""
    return Request(
        system="You help.",
        messages=(UserTurn("Read a.py"),),
        tools=TOOLS,
        deadlines=deadlines or Deadlines(connect=5, first_byte=10, silence=10, whole=30),
    )


CALL = Said(
    text=("Ich öffne ", "die Datei 🌍.\n"),
    thinking=("Let me ", "look…"),
    calls=(("call_1", "read", '{"path": "ä/b.py", "lines": [1, 2]}'),),
)
