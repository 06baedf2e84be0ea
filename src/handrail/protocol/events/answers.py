"""Events of asking a model."""

from typing import Any, Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.structured import StructuredAnswer
from handrail.protocol.values import Effort, ReadAs, Role, ToolCall, Usage

AnswerEnd = Literal["stop", "tool_calls", "length", "filtered", "cancelled", "interrupted"]
FailureKind = Literal["retry_later", "fix_request", "authenticate", "give_up"]


class RequestStarted(EventBase):
    """Committed before the request is sent."""

    type: Literal["request_started"] = "request_started"
    turn_id: str
    request_id: str
    message_id: str
    """Id of the answer to come; its text streams under this id."""
    model: str
    role: Role = "main"
    attempt: int = 1
    prompt_bytes: int = 0
    prompt_tokens_estimate: int = 0
    stage_id: str = ""
    """The stage of a run that it belongs to."""
    apart: bool = False
    """Its answer is the stage's alone: the session's conversation does not have it."""
    most_tokens: int = 0
    most_usd: float = 0.0
    """What it can come to, where a budget holds."""
    effort: Effort | None = None
    """How much the model was to think, where somebody said so."""
    effort_sent: bool = False
    """Whether it was told that; not where it would refuse it."""


class RequestFailed(EventBase):
    type: Literal["request_failed"] = "request_failed"
    request_id: str
    kind: FailureKind
    message: str
    retry_in: float | None = None
    """Seconds until the next attempt; None when there is none."""
    raw: str = ""
    """Blob of the bytes received before the failure."""
    usage: Usage = Usage()
    cost_usd: float | None = 0.0


class Answered(EventBase):
    """A finished answer, or what there was of one that was cut short."""

    type: Literal["answered"] = "answered"
    turn_id: str
    request_id: str
    message_id: str
    model: str
    text: str
    thinking: str = ""
    opaque: tuple[dict[str, Any], ...] = ()
    """Blocks the provider wants back unchanged (such as signed thinking)."""
    calls: tuple[ToolCall, ...] = ()
    blocked: tuple[str, ...] = ()
    """What can be read of calls that do not count, because the answer breaks off: `edit src/cart.py`."""
    end: AnswerEnd
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    raw: str = ""
    """Blob of the answer's bytes as they came."""
    apart: bool = False
    """It is a stage's alone: the session's conversation does not have it."""
    structured: StructuredAnswer | None = None
    """What was understood of it, where it was to have parts; `text` is the same in words."""
    unread: tuple[str, ...] = ()
    """Why it could not be read so; nothing but its words is used then."""
    read: tuple[ReadAs, ...] = ()
    """How it was read, where it has parts."""
