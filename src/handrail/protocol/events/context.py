"""Events of what the model is shown."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import Effort, Kept, Role, Usage

Purpose = Literal["summary", "breakout", "batch", "route"]


class Compacted(EventBase):
    """Events up to `upto` are shown to the model as `summary`; the log keeps them."""

    type: Literal["compacted"] = "compacted"
    compaction_id: str
    upto: int
    summary: str
    kept: Kept = Kept()
    """What the summary is made of."""
    by: str = ""
    """The model that wrote the notes in it; empty: all of it was made by code."""
    problem: str = ""
    """Why what a model wrote is not used."""
    tokens_before: int
    tokens_after: int


class CompactionUndone(EventBase):
    type: Literal["compaction_undone"] = "compaction_undone"
    compaction_id: str


class SideAsked(EventBase):
    """A model is asked for something beside the conversation, which neither sees nor remembers it."""

    type: Literal["side_asked"] = "side_asked"
    request_id: str
    purpose: Purpose
    model: str
    role: Role = "main"
    prompt_bytes: int = 0
    prompt_tokens_estimate: int = 0
    most_tokens: int = 0
    most_usd: float = 0.0
    """What it can come to, where a budget holds."""
    effort: Effort | None = None
    """How much the model was to think, where somebody said so."""
    effort_sent: bool = False
    """Whether it was told that; not where it would refuse it."""


class SideAnswered(EventBase):
    """The end of it, whatever it was."""

    type: Literal["side_answered"] = "side_answered"
    request_id: str
    text: str = ""
    problem: str = ""
    """Why there is no answer."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    raw: str = ""
    """Blob of the answer's bytes as they came."""
