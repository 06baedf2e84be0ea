"""Events of what the model is shown."""

from typing import Literal

from handrail.protocol.events.base import EventBase


class Compacted(EventBase):
    """Events up to `upto` are shown to the model as `summary`; the log keeps them."""

    type: Literal["compacted"] = "compacted"
    compaction_id: str
    upto: int
    summary: str
    tokens_before: int
    tokens_after: int


class CompactionUndone(EventBase):
    type: Literal["compaction_undone"] = "compaction_undone"
    compaction_id: str
