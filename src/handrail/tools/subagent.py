"""The subagent tool: another context works on a task, and a report comes back."""

from collections.abc import Callable
from typing import Annotated, Literal, Protocol

from msgspec import Meta

from handrail.models.model import ToolSpec
from handrail.protocol.values import ToolCall, Value
from handrail.tools.tool import CallContext, Outcome, Tool

MAX_SUMMARY, MAX_LISTED, MAX_DESCRIPTION = 80, 20, 120


class SubagentArguments(Value):
    task: Annotated[str, Meta(max_length=50_000)] = ""
    agent: Annotated[str, Meta(max_length=80)] = ""
    mode: Literal["", "explore", "plan", "ask", "edit", "auto", "sandbox"] = ""
    tools: tuple[str, ...] = ()
    tokens: Annotated[int, Meta(ge=0)] = 0
    usd: Annotated[float, Meta(ge=0)] = 0.0
    resume: Annotated[str, Meta(max_length=80)] = ""


class Subagents(Protocol):
    """What runs sub-agents; wired by `app`."""

    async def run(self, arguments: SubagentArguments, work: CallContext) -> Outcome: ...

    def cancelled(self, call: ToolCall, work: CallContext) -> Outcome | None: ...


class RunSubagent(Tool[SubagentArguments]):
    name = "subagent"
    description = (
        "Give a self-contained task to a sub-agent with a fresh context; returns its report. It has at most "
        "your rights: narrow them by `mode`, `tools`, `tokens`, `usd`. `resume` continues an interrupted one."
    )
    action = "note"  # each call of the sub-agent is decided for itself
    arguments = SubagentArguments

    def __init__(
        self, subagents: Callable[[], Subagents], agents: Callable[[], list[tuple[str, str]]]
    ) -> None:
        """`agents`: name and description of each agent that can be used."""
        self._subagents = subagents
        self._agents = agents

    def spec(self, include: object = ()) -> ToolSpec:
        spec = super().spec()
        listed = [f"{name}: {text[:MAX_DESCRIPTION]}" for name, text in self._agents()[:MAX_LISTED]]
        if not listed:
            return spec
        return spec._replace(description=f"{spec.description} `agent` is one of: {'; '.join(listed)}.")

    def summary(self, arguments: SubagentArguments, work: CallContext) -> str:
        words = " ".join(arguments.task.split())
        words = words if len(words) <= MAX_SUMMARY else f"{words[: MAX_SUMMARY - 1]}…"
        return ": ".join(filter(None, [arguments.agent, words])) or f"resume {arguments.resume}"

    async def run(self, arguments: SubagentArguments, work: CallContext) -> Outcome:
        return await self._subagents().run(arguments, work)

    def cancelled(self, call: ToolCall, work: CallContext) -> Outcome | None:
        return self._subagents().cancelled(call, work)
