"""The model Protocol: a request in, a stream of typed parts out."""

from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from handrail.protocol.values import (
    Effort,
    ReadAs,
    StructuredAnswer,
    StructuredWay,
    ToolCall,
    Usage,
    Value,
)

StopReason = Literal["stop", "tool_calls", "length", "filtered", "cut"]
"""`cut`: the provider gave a reason that Handrail does not know, so the answer may be incomplete."""


class Image(NamedTuple):
    media_type: str
    data: bytes
    tokens: int = 0


class UserTurn(Value):
    text: str
    images: tuple[Image, ...] = ()


class AssistantTurn(Value):
    text: str
    calls: tuple[ToolCall, ...] = ()
    opaque: tuple[dict[str, Any], ...] = ()
    """Blocks that the same provider wants back unchanged; other adapters ignore them."""


class ToolResult(Value):
    call_id: str
    tool: str
    content: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


Message = UserTurn | AssistantTurn | ToolResult


class ToolSpec(NamedTuple):
    """A tool as described to the model; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class Deadlines(NamedTuple):
    """Seconds to connect, to the first byte, between bytes, and for the whole answer."""

    connect: float = 10.0
    first_byte: float = 120.0
    silence: float = 60.0
    whole: float = 300.0


class ActionChoices(NamedTuple):
    """What a model that takes one action at a time can choose from."""

    actions: tuple[str, ...] | None = None
    """Tools that make sense now; None: all. The prompt names all of them, so that it stays the same."""
    paths: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    fields: Mapping[str, dict[str, Any]] = MappingProxyType({})
    """Schemas of fields that cannot be any text."""


class Request(Value):
    """Everything a model needs for one answer. `system` and `tools` stay byte-stable across turns."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    output_schema: dict[str, Any] | None = None
    max_output_tokens: int = 16_384
    temperature: float | None = None
    effort: Effort | None = None
    """How much to think; None: the provider's default. Sent only to models that take it."""
    deadlines: Deadlines = Deadlines()
    choices: ActionChoices | None = None
    prefill: str = ""
    """The beginning of the answer, for servers that continue it (llama.cpp does)."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer; they are not part of it."""
    alternatives: int = 0
    """For how many tokens the server says how likely each is as the first of the answer."""
    weighs: tuple[str, ...] = ()
    """Continuations of `prefill`. A small model answers with how likely it goes on in other ways after each:
    JSON, a list of `[continuation, [[text, probability], ...]]`."""
    received: bytes | None = None
    """The bytes of the answer, if they came before a crash: they are read, and nothing is sent."""
    key: str = ""
    """Names this work for servers that answer it once however often it is sent; empty: it has no name."""


class RequestBytes(Value):
    """The bytes of the request, before they are sent; equal beginnings of requests are equal pieces."""

    pieces: tuple[bytes, ...]


class RawBytes(Value):
    """Bytes of the answer as received, with the key removed, for the audit."""

    data: bytes


class EndOfBytes(Value):
    """All bytes of the answer have come. Calls and other conclusions from them follow."""


class Text(Value):
    text: str


class Thinking(Value):
    text: str


class Opaque(Value):
    """A block to send back unchanged in later requests to the same provider."""

    block: dict[str, Any]


class CallPart(Value):
    """A complete tool call. Comes only after the provider said that the answer is finished."""

    call: ToolCall


class BlockedCalls(Value):
    """Descriptions of calls in an answer that was cut; none of them runs."""

    calls: tuple[str, ...]


class StructuredPart(Value):
    """A structured answer; comes once, before the end of the stream."""

    value: StructuredAnswer | None
    """None if it could not be read."""
    text: str
    """The whole text of the answer; replaces what streamed."""
    problems: tuple[str, ...] = ()
    read: tuple[ReadAs, ...] = ()
    recovered: StructuredAnswer | None = None
    """The complete parts of one that was cut."""


class Alternatives(Value):
    """Texts of tokens that the answer could begin with, each with its probability."""

    options: tuple[tuple[str, float], ...]


class UsagePart(Value):
    """Tokens so far; the last one counts."""

    usage: Usage


class Finished(Value):
    """The provider said that the answer is complete. Nothing follows."""

    reason: StopReason


class Progress(Value):
    """Progress of a slow model before its first text; not part of the answer."""

    what: Literal["checking", "loading", "reading", "writing", "weighing"]
    """The bytes of its file; until it answers, in seconds with no total; the tokens of the request; pieces
    of code that is shown when it is whole; continuations that are weighed."""
    done: int
    total: int = 0


AnswerPart = Text | Thinking | Opaque | CallPart | BlockedCalls | StructuredPart
Part = AnswerPart | Alternatives | RequestBytes | RawBytes | EndOfBytes | UsagePart | Progress | Finished


class Price(NamedTuple):
    """USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class Capabilities(NamedTuple):
    """What a model can do, and what it costs."""

    context_window: int = 32_768
    native_tools: bool = True
    schema_output: bool = False
    """Requests may have a schema; `structured` is how it is asked for at present."""
    structured: StructuredWay = "schema"
    images: bool = False
    thinking: bool = False
    effort: bool = False
    """Requests may say how much to think."""
    effort_with_tools: bool = True
    one_action: bool = False
    """Small and slow: needs short prompts, and one action of a closed schema at a time."""
    price: Price | None = None
    """None: unknown. A local server's price is zero."""

    def effort_for(self, request: Request) -> Effort | None:
        """The effort to send with a request, if the model takes one."""
        offers = bool(request.tools) and self.native_tools
        return request.effort if self.effort and (self.effort_with_tools or not offers) else None


class Model(Protocol):
    """A model. `stream` raises only `ModelProblem`s."""

    @property
    def name(self) -> str:
        """`connection/model`, as the user writes it."""

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """Parts as they arrive. Closing the generator, or cancelling, ends the request at once."""

    async def aclose(self) -> None: ...
