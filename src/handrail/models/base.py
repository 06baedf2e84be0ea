"""The model Protocol: a request in, a stream of typed parts out."""

from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from handrail.protocol.record import Record
from handrail.protocol.structured import StructuredAnswer
from handrail.protocol.values import Effort, Excerpt, ReadAs, ToolCall, Usage

NO_FIELDS: Mapping[str, dict[str, Any]] = MappingProxyType({})
Finish = Literal["stop", "tool_calls", "length", "filtered"]


class Image(NamedTuple):
    """A picture, and what kind it is."""

    media_type: str
    data: bytes
    tokens: int = 0
    """What it will cost, as far as its size tells."""


class UserTurn(Record):
    """What the user says."""

    text: str
    images: tuple[Image, ...] = ()


class AssistantTurn(Record):
    """What the model said and called."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    opaque: tuple[dict[str, Any], ...] = ()
    """What the same provider wants back unchanged; other adapters leave it out."""


class ToolResult(Record):
    """What came of a call."""

    call_id: str
    tool: str
    content: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


Message = UserTurn | AssistantTurn | ToolResult


class ToolSpec(NamedTuple):
    """A tool as the model is told of it; `schema` is JSON Schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class Deadlines(NamedTuple):
    """Seconds: to connect, to the first byte, between bytes, for the whole answer."""

    connect: float = 10.0
    first_byte: float = 120.0
    silence: float = 60.0
    whole: float = 300.0


class Request(Record):
    """All that a model needs to answer once. `system` and `tools` stay byte-stable across turns."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    output_schema: dict[str, Any] | None = None
    max_output_tokens: int = 16_384
    temperature: float | None = None
    effort: Effort | None = None
    """How much to think; None: as the provider has it. Sent to models that take it, and to no others."""
    deadlines: Deadlines = Deadlines()
    paths: tuple[str, ...] = ()
    """Files there are, for models that can only name one of them."""
    writable: tuple[str, ...] = ()
    """Those of them that `writing` tools may name."""
    writing: tuple[str, ...] = ()
    actions: tuple[str, ...] | None = None
    """Names of the tools that a small model may choose from now; None: all."""
    fields: Mapping[str, dict[str, Any]] = NO_FIELDS
    """For small models: what a field of a tool can be, where that is not any text."""
    rewrite: Excerpt | None = None
    """All that a small model is asked for: a better text for this part of a file."""
    begun: str = ""
    """The beginning of the answer, for models that go on from it (llama.cpp does)."""
    stop: tuple[str, ...] = ()
    """Texts at which the answer ends; they do not belong to it."""


class RawBytes(Record):
    """Bytes of the answer as they came, for the audit: all of them, but for the key if the server sent it."""

    data: bytes


class Text(Record):
    """Words of the answer."""

    text: str


class Thinking(Record):
    """Words before the answer."""

    text: str


class Opaque(Record):
    """A block to be given back unchanged in later requests to the same provider."""

    block: dict[str, Any]


class CallPart(Record):
    """A whole tool call. Comes only after the provider said that the answer is finished."""

    call: ToolCall


class Blocked(Record):
    """What can be read of calls in an answer that breaks off; none of them counts."""

    calls: tuple[str, ...]


class Structured(Record):
    """A structured answer as it was understood; comes before the end of the stream, once."""

    value: StructuredAnswer | None
    """None: it cannot be read."""
    text: str
    """All words of the answer; they stand for what streamed."""
    problems: tuple[str, ...] = ()
    read: tuple[ReadAs, ...] = ()


class UsagePart(Record):
    """Tokens so far; the last one counts."""

    usage: Usage


class Finished(Record):
    """The provider's own word that the answer is complete. Nothing follows it."""

    reason: Finish


class Progress(Record):
    """How far a slow model is before its first word; nothing of this belongs to the answer."""

    what: Literal["checking", "loading", "reading", "writing"]
    """The bytes of its file; until it answers, in seconds with no total; the tokens of the request; pieces
    of code that is shown when it is whole."""
    done: int
    total: int = 0


Part = RawBytes | Text | Thinking | Opaque | CallPart | Blocked | Structured | UsagePart | Progress | Finished


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
    images: bool = False
    thinking: bool = False
    effort: bool = False
    """It can be told how much to think."""
    effort_with_tools: bool = True
    """Also in a request that offers tools."""
    one_action: bool = False
    """Small and slow: short prompts, one action of a closed schema at a time."""
    price: Price | None = None
    """None: not known. A local server costs nothing and says so with zeros."""

    def effort_for(self, request: Request) -> Effort | None:
        """The effort that is sent with a request: what it asks for, where the model takes that."""
        offers = bool(request.tools) and self.native_tools
        return request.effort if self.effort and (self.effort_with_tools or not offers) else None


class Model(Protocol):
    """Something that answers. Errors that leave `stream` are `ModelProblem`s and nothing else."""

    @property
    def name(self) -> str:
        """`connection/model`, as the user writes it."""

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """Parts as they come. Closing the generator, or cancelling, ends the request at once."""

    async def aclose(self) -> None:
        """Give back connections."""
