"""Events of requests to models: answers, failures, side requests, compaction."""

from typing import Any, Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import (
    CompactionSummary,
    Effort,
    ReadAs,
    Role,
    StructuredAnswer,
    StructuredWay,
    ToolCall,
    Usage,
)

AnswerEnd = Literal["stop", "tool_calls", "length", "filtered", "cut", "cancelled", "interrupted"]
"""`cut`: for a reason that Handrail does not know. Calls run only after `stop` and `tool_calls`."""
FailureKind = Literal["retry_later", "fix_request", "authenticate", "give_up"]
Purpose = Literal["summary", "breakout", "batch", "route", "title", "search", "subtask", "relations"]


class RequestStarted(EventBase, tag="request_started"):
    """Committed before the request is sent."""

    turn_id: str
    request_id: str
    message_id: str
    """Id of the answer; its text streams under this id."""
    model: str
    role: Role = "main"
    attempt: int = 1
    prompt_bytes: int = 0
    prompt_tokens_estimate: int = 0
    stage_id: str = ""
    apart: bool = False
    """Only the stage uses the answer: it is not part of the session's conversation."""
    most_tokens: int = 0
    most_usd: float = 0.0
    """Upper bound, if a budget applies."""
    effort: Effort | None = None
    effort_sent: bool = False
    """Whether the effort was sent; not to models that refuse it."""
    body: str = ""
    """The stored bytes that were sent (`storage/request_bytes.py`); empty if the model has none to show."""


class RequestContinued(EventBase, tag="request_continued"):
    """A further body sent for the same request; committed before it is sent."""

    request_id: str
    body: str


class AnswerReceived(EventBase, tag="answer_received"):
    """All bytes of an answer are stored; nothing was concluded from them yet."""

    request_id: str
    raw: str


class RequestFailed(EventBase, tag="request_failed"):
    request_id: str
    kind: FailureKind
    message: str
    retry_in: float | None = None
    """Seconds until the next attempt; None: no more attempts."""
    raw: str = ""
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    recovered: StructuredAnswer | None = None
    """The complete parts of a structured answer that broke off."""


class Answered(EventBase, tag="answered", kw_only=True):
    """A finished answer, or the part of one that was cut off."""

    turn_id: str
    request_id: str
    message_id: str
    model: str
    text: str
    thinking: str = ""
    opaque: tuple[dict[str, Any], ...] = ()
    """Blocks that the provider wants back unchanged, such as signed thinking."""
    calls: tuple[ToolCall, ...] = ()
    blocked: tuple[str, ...] = ()
    """Calls that do not run because the answer was cut off, as far as readable: `edit src/cart.py`."""
    end: AnswerEnd
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    raw: str = ""
    apart: bool = False
    """Only a stage uses it: it is not part of the session's conversation."""
    structured: StructuredAnswer | None = None
    """The parsed object, if one was asked for; `text` says the same in words."""
    unread: tuple[str, ...] = ()
    """Why no object could be parsed; then only the text is used."""
    read: tuple[ReadAs, ...] = ()
    recovered: StructuredAnswer | None = None
    """The complete parts of a structured answer that was cut; none of its changes is made by itself."""


class StructuredOutputChanged(EventBase, tag="structured_output_changed"):
    """A model did not answer in the form that was asked for; from now on it is asked for in this way."""

    model: str
    way: StructuredWay


class Compacted(EventBase, tag="compacted", kw_only=True):
    """The model sees `summary` in place of the events up to `upto`; the log keeps them."""

    compaction_id: str
    upto: int
    summary: str
    kept: CompactionSummary = CompactionSummary()
    by: str = ""
    """The model that wrote its notes; empty: code wrote all of it."""
    problem: str = ""
    """Why a model's notes are not used."""
    tokens_before: int
    tokens_after: int


class CompactionUndone(EventBase, tag="compaction_undone"):
    compaction_id: str


class SideAsked(EventBase, tag="side_asked"):
    """A request to a model outside the conversation, which never contains it."""

    request_id: str
    purpose: Purpose
    model: str
    role: Role = "main"
    prompt_bytes: int = 0
    prompt_tokens_estimate: int = 0
    most_tokens: int = 0
    most_usd: float = 0.0
    """Upper bound, if a budget applies."""
    effort: Effort | None = None
    effort_sent: bool = False
    """Whether the effort was sent; not to models that refuse it."""
    body: str = ""
    key: str = ""
    """Of an answer that is not asked for twice: the same after a restart."""


class SideAnswered(EventBase, tag="side_answered"):
    """The end of a side request: its answer, or why there is none."""

    request_id: str
    text: str = ""
    problem: str = ""
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    raw: str = ""


AnsweringEvent = RequestStarted | RequestContinued | AnswerReceived | RequestFailed | Answered
SideEvent = SideAsked | SideAnswered
RequestEvent = AnsweringEvent | StructuredOutputChanged | Compacted | CompactionUndone | SideEvent
