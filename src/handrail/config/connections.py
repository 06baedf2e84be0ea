"""What a user may say about a connection: a named place where models answer."""

from typing import Literal

from pydantic import Field

from handrail.protocol.values import Value

Wire = Literal["openai", "anthropic"]


class PriceSettings(Value):
    """USD per million tokens, where the user knows better than the bundled list."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)


class ConnectionSettings(Value):
    """One connection. Under the name of a built-in one it changes only the fields that are set."""

    protocol: Wire = "openai"
    base_url: str = ""
    """Everything before `/chat/completions` or `/v1/messages`, such as `https://host/v1`."""
    key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key, first match wins. The key itself is never a setting."""
    key_header: str = ""
    """The header that carries the key; empty: what the protocol uses (Azure wants `api-key`)."""
    headers: dict[str, str] = Field(default_factory=dict)
    query: dict[str, str] = Field(default_factory=dict)
    """Added to every address, such as Azure's `api-version`."""
    context_window: int | None = Field(default=None, ge=1024)
    price: PriceSettings | None = None
    native_tools: bool = True
    """False: tools are described in the prompt and calls are read from the text."""
    images: bool | None = None
    schema_output: bool | None = None
    effort: bool = False
    """Whether this server's models take an effort; it is sent only where that is known or said here."""
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name this server has for the limit on output tokens."""
    stream_usage: bool = True
    """False for a server that refuses `stream_options`; then it counts no tokens for us."""
