"""Events of sub-agents: tasks that a model lets another context work on, inside its own session."""

from typing import Any

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import FinishReason, Mode, Usage, Value


class SubagentReport(Value, kw_only=True):
    """What a sub-agent did, put together by code; only `text` is a model's."""

    reason: FinishReason
    detail: str = ""
    text: str = ""
    """Its last words, or the result of the agent that it ran."""
    files: tuple[str, ...] = ()
    """Files that it and its own sub-agents changed."""
    commands: int = 0
    """Commands that it ran."""
    refused: int = 0
    """Calls that policy, a hook or the user refused."""
    steps: int = 0
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    """Its own sub-agents included; None: not known."""


class SubagentStarted(EventBase, tag="subagent_started", kw_only=True):
    """Committed before the sub-agent does anything, and again when an interrupted one goes on."""

    turn_id: str
    call_id: str
    """The call that started it, in the context of its parent."""
    subagent_id: str
    parent: str = ""
    """The sub-agent that started it; empty: the conversation."""
    depth: int = 1
    task: str
    agent: str = ""
    """The agent in a folder that does the task; empty: the tool loop."""
    mode: Mode
    tools: tuple[str, ...] = ()
    tokens: int | None = None
    usd: float | None = None
    resumed: bool = False


class SubagentEvent(EventBase, tag="subagent_event", kw_only=True):
    """An event in a sub-agent's context. What concerns the workspace is an event of the session itself."""

    subagent_id: str
    event: dict[str, Any]
    usage: Usage = Usage()
    """What the event has cost, so that it counts for all above."""
    cost_usd: float | None = 0.0


class SubagentFinished(EventBase, tag="subagent_finished"):
    """Committed with the end of the call that started it."""

    subagent_id: str
    report: SubagentReport


SubagentsEvent = SubagentStarted | SubagentEvent | SubagentFinished
