"""Events of using tools."""

from typing import Any, Literal

from handrail.protocol.errors import ToolError
from handrail.protocol.events.base import EventBase
from handrail.protocol.values import AttachedImage, FileSeen, ToolKind

CallStatus = Literal["ok", "refused", "failed", "cancelled", "interrupted"]


class ToolStarted(EventBase):
    """Committed before the tool does anything."""

    type: Literal["tool_started"] = "tool_started"
    turn_id: str
    call_id: str
    tool: str
    arguments: dict[str, Any]
    kind: ToolKind
    summary: str
    """One line for a person: `src/cart.py`, `pytest -q`."""
    stage_id: str = ""
    """The stage of a run that it belongs to."""


class ToolFinished(EventBase):
    type: Literal["tool_finished"] = "tool_finished"
    turn_id: str
    call_id: str
    tool: str
    status: CallStatus
    summary: str = ""
    """One line for a person: `41 lines`, `exit 1 in 0.4 s`."""
    content: str = ""
    """What the model is shown, capped."""
    shown: str = ""
    """What a person is shown below the line, capped."""
    error: ToolError | None = None
    output: str = ""
    """Blob of the whole output, where there is more than `content`."""
    files: tuple[FileSeen, ...] = ()
    images: tuple[AttachedImage, ...] = ()
    """Pictures that go with `content`."""
    seconds: float = 0.0
    apart: bool = False
    """A stage of code called it: the session's conversation does not have it."""
