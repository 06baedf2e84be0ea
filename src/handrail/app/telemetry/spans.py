"""Spans from events, by the names of OpenTelemetry's GenAI conventions.

The id of a span follows from its events, so that two processes that share a session agree on it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from handrail.protocol import events
from handrail.protocol.events import Recorded
from handrail.protocol.events.base import EventBase
from handrail.protocol.values import Usage, Value
from handrail.sessions.subagent_session import inner_event

Attribute = str | bool | int | float | tuple[str, ...]
Attributes = dict[str, Attribute]
MAX_CONTENT = 16_000
"""Characters of one attribute with content."""


class Span(Value, kw_only=True):
    """Something that has ended. Times are seconds since 1970."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int = 0
    """0: none."""
    client: bool = False
    """It is a request to somebody else."""
    start: float
    end: float
    attributes: Mapping[str, Attribute]
    error: str = ""
    """Why it failed, as a name: `refused`, `retry_later`."""


class _Open(Value, kw_only=True):
    name: str
    span_id: int
    parent_id: int
    client: bool = False
    start: float
    attributes: dict[str, Attribute]


def span_id(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") or 1


def trace_id(key: str) -> int:
    return int.from_bytes(hashlib.sha256(b"trace:" + key.encode()).digest()[:16], "big") or 1


class SpanProjection:
    """The spans that each event ends. One for each session; a turn is a trace."""

    def __init__(self, session_id: str, content: Callable[[str], str] | None = None) -> None:
        """`content` hides secrets in texts; None: no texts are in spans."""
        self._session = session_id
        self._content = content
        self._open: dict[str, _Open] = {}
        self._turn = ""
        self._stages: list[str] = []
        self._message = ""

    def add(self, recorded: Recorded) -> Iterator[Span]:
        yield from self._event(recorded.event, recorded.at, "")

    def _event(self, event: EventBase, at: float, inside: str) -> Iterator[Span]:
        """`inside`: the sub-agent whose event it is."""
        key = f"{inside}/" if inside else ""
        match event:
            case events.UserMessage() if not inside:
                self._message = event.text
            case events.TurnStarted(turn_id, _, model, mode) if not inside:
                # A turn that was cut off by a crash has no end, and neither has what it was doing.
                self._open.clear()
                self._stages.clear()
                self._turn = turn_id
                about = {"gen_ai.request.model": model, "handrail.mode": mode}
                self._start(
                    "invoke_agent handrail",
                    f"turn:{turn_id}",
                    "",
                    at,
                    {
                        "gen_ai.operation.name": "invoke_agent",
                        "gen_ai.agent.name": "handrail",
                        **about,
                        **self._text("gen_ai.input.messages", [{"role": "user", "content": self._message}]),
                    },
                )
            case events.TurnFinished() if not inside:
                failed: str = (
                    event.reason if event.reason in ("failed", "interrupted", "budget", "stuck") else ""
                )
                yield from self._end(
                    f"turn:{event.turn_id}",
                    at,
                    failed,
                    {
                        **_usage(event.usage, event.cost_usd),
                        "handrail.finish_reason": event.reason,
                        "handrail.steps": event.steps,
                    },
                )
                self._turn = ""
            case events.StageStarted(_, stage_id, stage, kind):
                self._start(
                    f"stage {stage}",
                    f"{key}stage:{stage_id}",
                    self._parent(inside),
                    at,
                    {"handrail.stage.kind": kind},
                )
                self._stages.append(f"{key}stage:{stage_id}")
            case events.StageCompleted(_, stage_id):
                yield from self._end_stage(f"{key}stage:{stage_id}", at, "")
            case events.RunFailed() | events.RunBrokenOff():
                for open_stage in [each for each in self._stages if each.startswith(f"{key}stage:")][::-1]:
                    yield from self._end_stage(open_stage, at, "failed")
            case events.SubagentStarted():
                self._start_subagent(event, at)
            case events.SubagentEvent(subagent_id=subagent_id):
                yield from self._event(inner_event(event), at, subagent_id)
            case events.SubagentFinished(subagent_id, report):
                unfinished: str = "" if report.reason == "answered" else report.reason
                yield from self._end(
                    f"subagent:{subagent_id}",
                    at,
                    unfinished,
                    {
                        **_usage(report.usage, report.cost_usd),
                        "handrail.finish_reason": report.reason,
                    },
                )
            case _:
                yield from self._work(event, at, inside)

    def _work(self, event: EventBase, at: float, inside: str) -> Iterator[Span]:
        """Requests, tools and checks."""
        key = f"{inside}/" if inside else ""
        match event:
            case events.RequestStarted() | events.SideAsked():
                self._start_request(event, f"{key}request:{event.request_id}", self._parent(inside), at)
            case events.Answered(request_id=request_id):
                reasons: dict[str, Attribute] = {
                    "gen_ai.response.finish_reasons": (event.end,),
                    "gen_ai.response.id": request_id,
                }
                error: str = event.end if event.end in ("cancelled", "interrupted", "cut") else ""
                text = self._text("gen_ai.output.messages", [{"role": "assistant", "content": event.text}])
                more: Attributes = {**_usage(event.usage, event.cost_usd), **reasons, **text}
                yield from self._end(f"{key}request:{request_id}", at, error, more)
            case events.RequestFailed(request_id, kind):
                more = _usage(event.usage, event.cost_usd)
                yield from self._end(f"{key}request:{request_id}", at, kind, more)
            case events.SideAnswered(request_id):
                error = "failed" if event.problem else ""
                more = _usage(event.usage, event.cost_usd)
                yield from self._end(f"{key}request:{request_id}", at, error, more)
            case events.ToolStarted():
                name = f"{key}tool:{event.call_id}"
                self._start(
                    f"execute_tool {event.tool}",
                    name,
                    self._parent(inside),
                    at,
                    {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": event.tool,
                        "gen_ai.tool.type": "function",
                        "gen_ai.tool.call.id": event.call_id,
                        **self._text("gen_ai.tool.call.arguments", event.arguments),
                    },
                )
            case events.ToolFinished():
                yield from self._end_tool(event, f"{key}tool:{event.call_id}", inside, at)
            case events.CheckStarted(_, check_id, command, attempt):
                self._start(
                    "check",
                    f"check:{check_id}",
                    self._parent(inside),
                    at,
                    {
                        "handrail.check.attempt": attempt,
                        **self._text("handrail.check.command", command),
                    },
                )
            case events.CheckFinished(_, check_id, passed):
                more = {"handrail.check.passed": passed}
                yield from self._end(f"check:{check_id}", at, "" if passed else "failed", more)

    def _parent(self, inside: str) -> str:
        """The innermost of what is open now: a stage, the sub-agent, the turn."""
        prefix = f"{inside}/stage:" if inside else "stage:"
        stage = next((each for each in reversed(self._stages) if each.startswith(prefix)), "")
        return stage or (f"subagent:{inside}" if inside else f"turn:{self._turn}")

    def _start_request(
        self, event: "events.RequestStarted | events.SideAsked", key: str, parent: str, at: float
    ) -> None:
        provider, _, model = event.model.partition("/")
        about: dict[str, Attribute] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "handrail.role": event.role,
        }
        if isinstance(event, events.SideAsked):
            about["handrail.purpose"] = event.purpose
        elif event.attempt > 1:
            about["handrail.attempt"] = event.attempt
        self._start(f"chat {model}", key, parent, at, about, client=True)

    def _end_tool(self, event: "events.ToolFinished", key: str, inside: str, at: float) -> Iterator[Span]:
        if key not in self._open:  # refused before it started
            about: dict[str, Attribute] = {"gen_ai.operation.name": "execute_tool"}
            about |= {"gen_ai.tool.name": event.tool, "gen_ai.tool.call.id": event.call_id}
            self._start(f"execute_tool {event.tool}", key, self._parent(inside), at, about)
        error = "" if event.status == "ok" else event.error.reason if event.error else event.status
        more: Attributes = {
            "handrail.tool.status": event.status,
            **self._text("gen_ai.tool.call.result", event.content),
        }
        yield from self._end(key, at, error, more)

    def _start_subagent(self, event: "events.SubagentStarted", at: float) -> None:
        if f"subagent:{event.subagent_id}" in self._open:
            return  # it goes on after an interruption
        call = f"{event.parent}/tool:{event.call_id}" if event.parent else f"tool:{event.call_id}"
        parent = call if call in self._open else self._parent(event.parent)
        name = event.agent or "sub-agent"
        self._start(
            f"invoke_agent {name}",
            f"subagent:{event.subagent_id}",
            parent,
            at,
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": name,
                "gen_ai.agent.id": event.subagent_id,
                "handrail.mode": event.mode,
            },
        )

    def _start(
        self,
        name: str,
        key: str,
        parent: str,
        at: float,
        attributes: dict[str, Attribute],
        *,
        client: bool = False,
    ) -> None:
        if self._turn:
            above = self._open.get(parent) or self._open.get(f"turn:{self._turn}")
            # With the time: providers give the same id to calls of several answers.
            self._open[key] = _Open(
                name=name,
                span_id=span_id(f"{self._session}/{key}/{at}"),
                parent_id=above.span_id if above else 0,
                client=client,
                start=at,
                attributes=attributes,
            )

    def _end_stage(self, key: str, at: float, error: str) -> Iterator[Span]:
        if key in self._stages:
            self._stages.remove(key)
        yield from self._end(key, at, error, {})

    def _end(self, key: str, at: float, error: str, more: Mapping[str, Attribute]) -> Iterator[Span]:
        started = self._open.pop(key, None)
        if started is None:
            return
        about = {"gen_ai.conversation.id": self._session, **started.attributes, **more}
        if error:
            about["error.type"] = error
        yield Span(
            name=started.name,
            trace_id=trace_id(f"{self._session}/{self._turn}"),
            span_id=started.span_id,
            parent_id=started.parent_id,
            client=started.client,
            start=started.start,
            end=max(at, started.start),
            attributes=about,
            error=error,
        )

    def _text(self, name: str, value: Any) -> dict[str, Attribute]:
        if self._content is None:
            return {}
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return {name: self._content(text)[:MAX_CONTENT]}


def _usage(usage: Usage, cost: float | None) -> dict[str, Attribute]:
    counted: dict[str, Attribute] = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }
    return counted | ({} if cost is None else {"handrail.cost_usd": cost})
