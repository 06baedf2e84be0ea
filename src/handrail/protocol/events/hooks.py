"""Events of hooks, the user's own programs around calls, turns and sessions."""

from typing import Any, Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import HookPoint


class HookSpoke(EventBase):
    """What a hook said, or that it failed; one with nothing to say leaves no event."""

    type: Literal["hook_spoke"] = "hook_spoke"
    turn_id: str
    on: HookPoint
    hook: str
    """The program, as its settings name it."""
    did: Literal["denied", "changed", "told", "demanded", "failed"]
    text: str = ""
    """What it said, or how it failed."""
    call_id: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None
    """What the call's arguments were changed to."""


class SessionHooked(EventBase):
    """The hooks of the session's start have run, and do not run again in it."""

    type: Literal["session_hooked"] = "session_hooked"
    text: str = ""
    """What they told the model, for the whole session."""
