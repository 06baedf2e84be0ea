"""Events of tool calls: results, background commands, command batches, hooks."""

from typing import Any, Literal

from handrail.protocol.errors import ToolError
from handrail.protocol.events.base import EventBase
from handrail.protocol.values import AttachedImage, FileSeen, HookPoint, ToolCall, ToolKind

CallStatus = Literal["ok", "refused", "failed", "cancelled", "interrupted"]
BackgroundEnd = Literal["exited", "stopped", "limit", "session", "interrupted"]
"""By itself, stopped by somebody, at a limit, with the session, or with Handrail."""
BatchDecision = Literal["continue", "stop", "replace"]
BatchEnd = Literal["completed", "stopped", "limit", "cancelled", "interrupted"]


class ToolStarted(EventBase, tag="tool_started"):
    """Committed before the tool does anything."""

    turn_id: str
    call_id: str
    tool: str
    arguments: dict[str, Any]
    kind: ToolKind
    summary: str
    """One line for a person: `src/cart.py`, `pytest -q`."""
    stage_id: str = ""


class ToolFinished(EventBase, tag="tool_finished"):
    turn_id: str
    call_id: str
    tool: str
    status: CallStatus
    summary: str = ""
    """One line for a person: `41 lines`, `exit 1 in 0.4 s`."""
    content: str = ""
    """What the model sees, capped."""
    shown: str = ""
    """What a person sees below the summary, capped."""
    error: ToolError | None = None
    output: str = ""
    """Blob of the whole output, if there is more than `content`."""
    files: tuple[FileSeen, ...] = ()
    images: tuple[AttachedImage, ...] = ()
    seconds: float = 0.0
    apart: bool = False
    """A code stage called it: it is not part of the session's conversation."""


class BackgroundStarted(EventBase, tag="background_started"):
    """Committed before the command runs."""

    background_id: str
    """Short and unique in the session: `b1`."""
    turn_id: str
    call_id: str
    command: str
    """On one line."""


class BackgroundEnded(EventBase, tag="background_ended"):
    """Committed when no process of the command is left."""

    background_id: str
    command: str
    how: BackgroundEnd
    code: int | None = None
    """Exit status, negative for a signal; None if it was stopped."""
    summary: str = ""
    """One line for a person: `exit 1 in 4.2 s`."""
    shown: str = ""
    """The end of its output, capped."""
    output: str = ""
    seconds: float = 0.0


class BatchStarted(EventBase, tag="batch_started"):
    turn_id: str
    batch_id: str
    commands: tuple[str, ...]
    """What the user picked, in order."""
    together: bool = True
    """False: a single command, with no decision after it."""
    network: bool = False
    told: bool = True
    """Whether the model sees their output."""


class BatchStep(EventBase, tag="batch_step", kw_only=True):
    """The next command; committed before anything is decided about it."""

    turn_id: str
    batch_id: str
    number: int
    """1 for the first of the batch; a corrected command has the number of the one it replaces."""
    call: ToolCall
    by: Literal["user", "model"] = "user"
    model: str = ""
    """The model that the transcript shows as the caller."""
    told: bool = True
    """Whether the model sees its result."""
    total: int
    succeeded: int = 0
    failed: int = 0
    remaining: int = 0


class BatchDecided(EventBase, tag="batch_decided"):
    """How a batch continues after a command has ended."""

    turn_id: str
    batch_id: str
    number: int
    decision: BatchDecision
    by: Literal["model", "rule"]
    why: str = ""
    command: str = ""
    """For `replace`: what runs instead."""
    network: bool = False


class BatchFinished(EventBase, tag="batch_finished", kw_only=True):
    turn_id: str
    batch_id: str
    end: BatchEnd
    why: str = ""
    """For the user; empty if all commands ran."""
    number: int
    """The last command that was started."""
    total: int
    succeeded: int
    failed: int
    remaining: int


class HookSpoke(EventBase, tag="hook_spoke"):
    """A hook's output or failure; a hook without output leaves no event."""

    turn_id: str
    on: HookPoint
    hook: str
    """The program, as its settings name it."""
    did: Literal["denied", "changed", "told", "demanded", "failed"]
    text: str = ""
    """Its output, or how it failed."""
    call_id: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None


class SessionHooked(EventBase, tag="session_hooked"):
    """The session-start hooks have run, and do not run again."""

    text: str = ""
    """Their output for the model, for the whole session."""


BackgroundEvent = BackgroundStarted | BackgroundEnded
BatchEvent = BatchStarted | BatchStep | BatchDecided | BatchFinished
ToolEvent = BackgroundEvent | BatchEvent | ToolStarted | ToolFinished | HookSpoke | SessionHooked
