"""State of the running turn and its command batch: all that another process needs to continue it."""

import hashlib
import json
import re
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from handrail.protocol.errors import ToolError
from handrail.protocol.events import Event
from handrail.protocol.events.changes import ChangeAbandoned, ChangePrepared
from handrail.protocol.events.checks import AttemptStarted
from handrail.protocol.events.conversation import NextStepsOffered, Nudged, OutputRequested
from handrail.protocol.events.requests import (
    Answered,
    AnswerReceived,
    RequestFailed,
    RequestStarted,
    SideAnswered,
)
from handrail.protocol.events.runs import StageStarted
from handrail.protocol.events.subagents import SubagentEvent, SubagentStarted
from handrail.protocol.events.tools import (
    BatchDecided,
    BatchDecision,
    BatchEnd,
    BatchFinished,
    BatchStarted,
    BatchStep,
    CallStatus,
    HookSpoke,
    ToolFinished,
    ToolStarted,
)
from handrail.protocol.values import NextStep, ToolCall, Usage

REMEMBERED_CALLS = 12
DURATION = re.compile(r"\b\d+(\.\d+)? ?(ms|s|sec|seconds)\b")
"""Results that differ only in durations count as the same."""


class PlannedCommand(Struct):
    command: str
    network: bool = False
    by_user: bool = True
    """The user picked this exact text."""


class NextCommand(NamedTuple):
    number: int
    planned: PlannedCommand


class BatchState(Struct):
    batch_id: str
    together: bool
    told: bool
    planned: list[PlannedCommand]
    number: int = 0
    """Number of the last started command."""
    call_id: str = ""
    ends: dict[int, CallStatus] = {}
    corrections: int = 0
    """How often the current command was replaced."""
    decision: BatchDecision | None = None
    """What to do after the command that has ended."""
    why: str = ""
    finished: bool = False
    rejected: bool = False

    @property
    def total(self) -> int:
        return len(self.planned)

    @property
    def succeeded(self) -> int:
        return sum(end == "ok" for end in self.ends.values())

    @property
    def failed(self) -> int:
        return sum(end in ("failed", "refused") for end in self.ends.values())

    @property
    def remaining(self) -> int:
        return self.total - self.number

    @property
    def end(self) -> CallStatus | None:
        return self.ends.get(self.number)

    def next(self) -> NextCommand | None:
        """The command to start now; None if all have run."""
        number = self.number if self.decision == "replace" and self.end != "ok" else self.number + 1
        return NextCommand(number, self.planned[number - 1]) if number <= self.total else None

    def closed(self, turn_id: str, end: BatchEnd, why: str) -> BatchFinished:
        return BatchFinished(
            turn_id=turn_id,
            batch_id=self.batch_id,
            end=end,
            why=why,
            number=self.number,
            total=self.total,
            succeeded=self.succeeded,
            failed=self.failed,
            remaining=self.remaining,
        )

    def apply(self, event: Event) -> None:
        match event:
            case BatchStep():
                self.corrections = self.corrections + 1 if event.number == self.number else 0
                self.number, self.call_id, self.decision = event.number, event.call.id, None
                self.ends.pop(event.number, None)
            case ToolFinished() if event.call_id == self.call_id:
                self.ends[self.number] = event.status
                self.rejected = event.error is not None and event.error.reason == "user_rejected"
            case BatchDecided():
                self.decision, self.why = event.decision, event.why
                if event.decision == "replace":
                    place = self.number if self.end != "ok" else self.number + 1
                    corrected = PlannedCommand(event.command, event.network, by_user=False)
                    self.planned = [*self.planned[: place - 1], corrected, *self.planned[place:]]
            case BatchFinished():
                self.finished = True


class CallState(Struct):
    call: ToolCall
    status: Literal["wanted", "started", "finished"] = "wanted"


class OpenRequest(NamedTuple):
    request_id: str
    message_id: str
    model: str
    apart: bool = False
    raw: str = ""
    """The stored bytes of its answer, which were not read yet."""


class FinishedCall(NamedTuple):
    """A finished call, reduced to what detecting repetition needs."""

    call: str
    result: str
    failed: bool


class TurnState(Struct):
    turn_id: str
    number: int
    model: str
    started_at: float
    waiting_since: float = 0.0
    waited: float = 0.0
    check: str = ""
    attempts: int = 1
    attempt: int = 0
    """Number of the current attempt; 0 without a check."""
    temperature: float | None = None
    message_seq: int = 0
    """Sequence number of the message that started the turn."""
    run_id: str = ""
    """The paused run that the message was for."""
    unrouted: bool = False
    made: list[ChangePrepared] = []
    """Changes since the start of the attempt."""
    ran: bool = False
    """A command has succeeded since the last edit."""
    said: bool = False
    """The last answer has words."""
    offered: tuple[NextStep, ...] = ()
    """Next steps by the model."""
    steps: int = 0
    usage: Usage = Usage()
    cost_usd: float = 0.0
    cost_known: bool = True
    calls: dict[str, CallState] = {}
    """Calls of the last answer, in its order."""
    request: OpenRequest | None = None
    last_request: str = ""
    refusal: ToolError | None = None
    """The refusal of the last finished call, if it was refused."""
    recent: list[FinishedCall] = []
    nudges: int = 0
    demands: int = 0
    """How often a hook demanded more before the turn may end."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema of the last answer, if the user gave one."""
    batch: BatchState | None = None
    """Commands that the user started from an answer."""
    subagents: int = 0
    """How many were started, also by other sub-agents."""

    def seconds(self, now: float) -> float:
        """How long the turn has worked, without waiting for the user."""
        return max(0.0, now - self.started_at - self.waited)

    def unfinished(self) -> list[CallState]:
        return [state for state in self.calls.values() if state.status != "finished"]

    def apply(self, event: Event) -> None:
        self._apply_batch(event)
        self._apply_change(event)
        match event:
            case RequestStarted():
                self.steps += event.attempt == 1
                self.request = OpenRequest(event.request_id, event.message_id, event.model, event.apart)
                self.last_request = event.request_id
            case AnswerReceived() if self.request and self.request.request_id == event.request_id:
                self.request = self.request._replace(raw=event.raw)
            case RequestFailed():
                self.request = None
                self._count(event.usage, event.cost_usd)
            case SideAnswered() | SubagentEvent():
                self._count(event.usage, event.cost_usd)
            case Answered():
                self.request = None
                self._count(event.usage, event.cost_usd)
                self.calls = {call.id: CallState(call=call) for call in event.calls}
                self.said = bool(event.text.strip())
            case StageStarted():
                # Calls that have ended belong to the stage before.
                self.calls = {each.call.id: each for each in self.unfinished()}
            case SubagentStarted(resumed=False):
                self.subagents += 1
            case NextStepsOffered():
                self.offered = event.steps
            case ToolStarted() if event.call_id in self.calls:
                self.calls[event.call_id].status = "started"
            case ToolFinished() if event.call_id in self.calls:
                self.calls[event.call_id].status = "finished"
                self.refusal = event.error if event.status == "refused" else None
                self._remember(self.calls[event.call_id].call, event)
                self.ran = self.ran or (event.tool == "run" and event.status == "ok")
            case AttemptStarted():
                self.attempt, self.temperature = event.number, event.temperature
                self.calls, self.recent, self.made, self.nudges, self.demands = {}, [], [], 0, 0
            case Nudged():
                self.nudges += 1
            case OutputRequested():
                self.output_schema = event.schema
            case HookSpoke(did="demanded"):
                self.calls = {}  # all have finished, and the turn continues
                self.demands += 1

    def _apply_change(self, event: Event) -> None:
        match event:
            case ChangePrepared():
                self.made = [*self.made, event]
                self.ran = self.ran and event.by == "command"
            case ChangeAbandoned():
                self.made = [change for change in self.made if change.change_id != event.change_id]

    def _apply_batch(self, event: Event) -> None:
        if self.batch:
            self.batch.apply(event)
        match event:
            case BatchStarted():
                planned = [PlannedCommand(command, event.network) for command in event.commands]
                self.batch = BatchState(event.batch_id, event.together, event.told, planned)
            case BatchStep():
                self.calls = {event.call.id: CallState(call=event.call)}
            case BatchDecided(by="model"):
                self.steps += 1

    def _count(self, usage: Usage, cost: float | None) -> None:
        self.usage = self.usage + usage
        self.cost_usd += cost or 0.0
        self.cost_known = self.cost_known and cost is not None

    def _remember(self, call: ToolCall, event: ToolFinished) -> None:
        arguments = json.dumps(call.arguments, sort_keys=True)
        content = DURATION.sub("", event.content)
        result = hashlib.sha256(content.encode(errors="replace")).hexdigest()[:16]
        signature = hashlib.sha256(f"{call.name}\0{arguments}".encode(errors="replace")).hexdigest()[:16]
        finished = FinishedCall(signature, result, event.status != "ok")
        self.recent = [*self.recent, finished][-REMEMBERED_CALLS:]
