"""The audit of a session: each request to a model, its answer, and what was understood of it."""

from typing import Any, NamedTuple

from msgspec import Struct, field

from handrail.protocol.errors import UsageProblem
from handrail.protocol.events.base import Recorded
from handrail.protocol.events.changes import ChangePrepared
from handrail.protocol.events.conversation import TurnStarted
from handrail.protocol.events.requests import (
    Answered,
    AnswerReceived,
    RequestContinued,
    RequestFailed,
    RequestStarted,
    SideAnswered,
    SideAsked,
)
from handrail.protocol.events.subagents import SubagentEvent
from handrail.protocol.events.tools import ToolFinished
from handrail.protocol.ids import session_stream
from handrail.protocol.values import StructuredAnswer, Usage
from handrail.sessions.export_import import events_of
from handrail.sessions.subagent_session import inner_event
from handrail.storage.event_log import Log


class AuditedCall(Struct):
    name: str
    arguments: dict[str, Any]
    status: str = "not run"
    refusal: str = ""


class AuditedRequest(Struct):
    """One body that was sent, with what came of it."""

    number: int
    at: float
    turn: int
    request_id: str
    model: str
    purpose: str
    """`answer`, or what a request beside the conversation was for."""
    attempt: int = 1
    body: str = ""
    raw: str = ""
    """Hashes of the stored request and of the answer's bytes; empty where there are none."""
    finish: str = "open"
    """The finish reason; `failed`, or `open` if nothing is on record about its end."""
    problem: str = ""
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    text: str = ""
    calls: dict[str, AuditedCall] = field(default_factory=dict)
    """By call id."""
    blocked: tuple[str, ...] = ()
    structured: StructuredAnswer | None = None
    recovered: StructuredAnswer | None = None
    unread: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    edits: list[str] = field(default_factory=list)
    """Files of the change sets that it led to."""
    refusals: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    """`request`, `answer`: what was stored and is no more."""


class RawExchange(NamedTuple):
    """The bytes as they were sent and received; None where they are no longer stored."""

    request: bytes | None
    answer: bytes | None


def audit_session(log: Log, session_id: str) -> list[AuditedRequest]:
    """All requests of a session, oldest first."""
    audit = _Audit()
    for _, one in events_of(log, session_stream(session_id)):
        match one.event:
            case SubagentEvent(event={"type": "turn_started"}):
                pass  # its turns are not the session's
            case SubagentEvent() as event:
                audit.apply(one._replace(event=inner_event(event)))
            case _:
                audit.apply(one)
    stored = {"", *log.contents.sizes()}
    for request in audit.found:
        request.pruned += ["request"] if request.body not in stored else []
        request.pruned += ["answer"] if request.raw not in stored else []
    return audit.found


def raw_exchange(log: Log, request: AuditedRequest) -> RawExchange:
    return RawExchange(
        log.request(request.body) if request.body else None, log.blob(request.raw) if request.raw else None
    )


def numbered_request(found: list[AuditedRequest], number: int) -> AuditedRequest:
    if 0 < number <= len(found):
        return found[number - 1]
    raise UsageProblem(f"This session has {len(found)} requests, so there is no number {number}.")


class _Audit:
    def __init__(self) -> None:
        self.found: list[AuditedRequest] = []
        self._open: dict[str, AuditedRequest] = {}
        self._turn = 0
        self._answered: AuditedRequest | None = None
        """The last one with an answer in the conversation: what is done follows from it."""

    def apply(self, one: Recorded) -> None:
        match one.event:
            case TurnStarted(number=number):
                self._turn = number
            case RequestStarted() as event:
                purpose = "stage" if event.apart else "answer"
                self._begin(one, event.request_id, event.model, purpose, event.attempt).body = event.body
            case SideAsked() as event:
                self._begin(one, event.request_id, event.model, event.purpose).body = event.body
            case RequestContinued(request_id=request_id, body=body):
                if before := self._open.get(request_id):
                    before.finish = "continued"
                    again = self._begin(one, request_id, before.model, before.purpose, before.attempt)
                    again.body = body
            case _ if asked := self._open.get(getattr(one.event, "request_id", "")):
                self._end(asked, one)
            case ToolFinished() as event if self._answered:
                call = self._answered.calls.get(event.call_id)
                refusal = event.error.message if event.error and event.status == "refused" else ""
                if call:
                    call.status, call.refusal = event.status, refusal
                self._answered.refusals += [f"{event.tool}: {refusal}"] if refusal else []
        if isinstance(one.event, ChangePrepared) and one.event.by in ("agent", "command") and self._answered:
            self._answered.edits += [file.path for file in one.event.files]

    def _begin(
        self, one: Recorded, request_id: str, model: str, purpose: str, attempt: int = 1
    ) -> AuditedRequest:
        new = AuditedRequest(len(self.found) + 1, one.at, self._turn, request_id, model, purpose, attempt)
        self._open[request_id] = new
        self.found.append(new)
        return new

    def _end(self, asked: AuditedRequest, one: Recorded) -> None:
        match one.event:
            case AnswerReceived(raw=raw):
                asked.raw = raw
            case RequestFailed() as event:
                asked.finish, asked.problem = "failed", event.message
                asked.recovered = event.recovered
                self._count(asked, event)
            case SideAnswered() as event:
                asked.finish, asked.problem = "failed" if event.problem else "stop", event.problem
                asked.text, asked.seconds = event.text, event.seconds
                self._count(asked, event)
            case Answered() as event:
                asked.finish, asked.text, asked.seconds = event.end, event.text, event.seconds
                asked.calls = {call.id: AuditedCall(call.name, call.arguments) for call in event.calls}
                asked.structured, asked.recovered = event.structured, event.recovered
                asked.blocked, asked.unread, asked.read = event.blocked, event.unread, event.read
                self._count(asked, event)
                self._answered = asked

    def _count(self, asked: AuditedRequest, event: RequestFailed | SideAnswered | Answered) -> None:
        asked.usage, asked.cost_usd, asked.raw = event.usage, event.cost_usd, event.raw or asked.raw
        self._open.pop(asked.request_id, None)
