"""What is known of the turn that is running: enough for any process to go on with it."""

import hashlib
import json
import re
from typing import Literal, NamedTuple

from handrail.protocol.errors import ToolError
from handrail.protocol.events import (
    Answered,
    AttemptStarted,
    BatchDecided,
    BatchStarted,
    BatchStep,
    ChangeAbandoned,
    ChangePrepared,
    Event,
    HookSpoke,
    Nudged,
    RequestFailed,
    RequestStarted,
    SideAnswered,
    ToolFinished,
    ToolStarted,
)
from handrail.protocol.values import Excerpt, ToolCall, Usage
from handrail.sessions.batch import Batch, begun
from handrail.sessions.fold import Fold

REMEMBERED_CALLS = 12
DURATION = re.compile(r"\b\d+(\.\d+)? ?(ms|s|sec|seconds)\b")
"""A result that differs only in how long it took is the same result."""


class CallState(Fold):
    call: ToolCall
    status: Literal["wanted", "started", "finished"] = "wanted"


class OpenRequest(NamedTuple):
    request_id: str
    message_id: str
    model: str
    apart: bool = False


class Done(NamedTuple):
    """A finished call, as far as noticing repetition needs it."""

    call: str
    result: str
    failed: bool


class TurnState(Fold):
    turn_id: str
    number: int
    model: str
    started_at: float
    waiting_since: float = 0.0
    waited: float = 0.0
    """Seconds in which the turn only waited for the user."""
    check: str = ""
    attempts: int = 1
    attempt: int = 0
    """Number of the fresh answer that is being tried; 0 without a check."""
    temperature: float | None = None
    rewrite: Excerpt | None = None
    """What the attempt asks a small model for."""
    message_seq: int = 0
    """Where the message that began the turn stands in the log."""
    run_id: str = ""
    """The paused run that the message was a word to."""
    unrouted: bool = False
    made: list[ChangePrepared] = []
    """Changes made since the attempt began."""
    steps: int = 0
    usage: Usage = Usage()
    cost_usd: float = 0.0
    cost_known: bool = True
    calls: dict[str, CallState] = {}
    """Calls of the last answer, in its order."""
    request: OpenRequest | None = None
    """A request that was sent and neither answered nor failed."""
    last_request: str = ""
    """Id of the request that was sent last."""
    refusal: ToolError | None = None
    """Of the call that ended last, if it was refused."""
    recent: list[Done] = []
    nudges: int = 0
    demands: int = 0
    """How often hooks did not let the turn end."""
    batch: Batch | None = None
    """Commands that the user runs from an answer."""

    def seconds(self, now: float) -> float:
        """How long the turn has worked, waiting for the user not counted."""
        return max(0.0, now - self.started_at - self.waited)

    def unfinished(self) -> list[CallState]:
        return [state for state in self.calls.values() if state.status != "finished"]

    def apply(self, event: Event) -> None:
        self._run(event)
        match event:
            case RequestStarted():
                self.steps += event.attempt == 1
                self.request = OpenRequest(event.request_id, event.message_id, event.model, event.apart)
                self.last_request = event.request_id
            case RequestFailed():
                self.request = None
                self._count(event.usage, event.cost_usd)
            case SideAnswered():
                self._count(event.usage, event.cost_usd)
            case Answered():
                self.request = None
                self._count(event.usage, event.cost_usd)
                self.calls = {call.id: CallState(call=call) for call in event.calls}
            case ToolStarted() if event.call_id in self.calls:
                self.calls[event.call_id].status = "started"
            case ToolFinished() if event.call_id in self.calls:
                self.calls[event.call_id].status = "finished"
                self.refusal = event.error if event.status == "refused" else None
                self._remember(self.calls[event.call_id].call, event)
            case ChangePrepared():
                self.made = [*self.made, event]
            case ChangeAbandoned():
                self.made = [change for change in self.made if change.change_id != event.change_id]
            case AttemptStarted():
                self.attempt, self.temperature, self.rewrite = event.number, event.temperature, event.rewrite
                self.calls, self.recent, self.made, self.nudges, self.demands = {}, [], [], 0, 0
            case Nudged():
                self.nudges += 1
            case HookSpoke(did="demanded"):
                self.calls = {}  # all ended; what was done does not end the turn now
                self.demands += 1

    def _run(self, event: Event) -> None:
        if self.batch:
            self.batch.apply(event)
        match event:
            case BatchStarted():
                self.batch = begun(event)
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
        self.recent = [*self.recent, Done(signature, result, event.status != "ok")][-REMEMBERED_CALLS:]
