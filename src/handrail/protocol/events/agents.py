"""Events of agents that are defined in folders; they belong to the workspace, not to one session."""

from typing import Any, Literal

from handrail.protocol.events.base import EventBase


class ValueKept(EventBase):
    """A named value for later runs of an agent; the last one of a name counts."""

    type: Literal["value_kept"] = "value_kept"
    pipeline: str
    name: str
    value: Any
    run_id: str
    """The run whose output it is."""
