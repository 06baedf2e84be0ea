"""State of a session's runs, also after rewinds: all that another process needs to continue one."""

import copy
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from handrail.protocol.events import Event
from handrail.protocol.events.base import Recorded
from handrail.protocol.events.changes import ChangeAbandoned, ChangeApplied, ChangePrepared, Redone, Rewound
from handrail.protocol.events.conversation import TurnStarted, UserMessage
from handrail.protocol.events.requests import Answered, RequestFailed, RequestStarted, SideAnswered, SideAsked
from handrail.protocol.events.runs import (
    BreakoutPending,
    GateFailed,
    RunBrokenOff,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunRepaired,
    RunResumed,
    RunStarted,
    StageCompleted,
    StageKind,
    StageStarted,
)
from handrail.protocol.events.session import SessionCopied
from handrail.protocol.events.subagents import SubagentEvent
from handrail.protocol.events.tools import BatchStarted, CallStatus, HookSpoke, ToolFinished, ToolStarted
from handrail.protocol.values import ChecklistItem, Mode, ToolKind, Usage
from handrail.sessions.projections import RouteState

MAX_SUMMARIES = 5
"""Ended runs that later turns are told about."""
MAX_FEEDBACK, FEEDBACK_LENGTH = 4, 8_000
"""Comments of the user that a run remembers: the latest, and how much of each."""
MAX_ISSUES, ISSUE_LENGTH = 20, 500


class CompletedStage(Struct):
    stage_id: str
    output: dict[str, Any] | None
    blob: str = ""


class StageCall(Struct):
    tool: str
    kind: ToolKind
    status: CallStatus | None = None
    """None: it was started, and its end is unknown."""
    seq: int = 0
    """Sequence number of its end."""
    change_id: str = ""
    applied: bool = False


class OpenStage(Struct):
    stage_id: str
    stage: str
    kind: StageKind
    seq: int = 0
    tools: tuple[str, ...] = ()
    calls: dict[str, StageCall] = {}
    """For a code stage, by call id: finished calls are not repeated."""
    answer: int = 0
    """For an answer stage: sequence number of the last complete answer."""
    unread: int = 0


class Spending(Struct):
    tokens: int = 0
    usd: float = 0.0
    known: bool = True
    """False: a price is not known."""


class ReservedSpending(Struct):
    """The upper bound of an open request; used if its real cost never becomes known."""

    request_id: str
    tokens: int
    usd: float


class RunState(Struct):
    run_id: str
    pipeline: str
    sha256: str = ""
    """Hash of the files that define the pipeline; empty: it is built in."""
    question: str = ""
    item: ChecklistItem | None = None
    conversational: bool = False
    reads_only: bool = False
    skips: tuple[str, ...] = ()
    mode: Mode | None = None
    tools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    continues: bool = False
    rounds: int = 1
    """How often the stages that run once per step were started."""
    spoke: bool = False
    """The conversation has its answer."""
    step: Literal["begin", "open", "done", "flawed", "paused", "resumed"] = "begin"
    start: str = ""
    """The stage to start with; empty: the first."""
    open: OpenStage | None = None
    last: str = ""
    stages: dict[str, CompletedStage] = {}
    flawed: str = ""
    """The stage whose output was rejected last."""
    gate: str = ""
    wanting: dict[str, list[str]] = {}
    """{stage: issues of its output, until it is completed again}"""
    repairs: dict[str, dict[str, int]] = {}
    """{first stage: {last stage: how often they were repeated}}"""
    feedback: list[str] = []
    chosen: str = ""
    """The user's last menu choice."""
    said: str = ""
    """What they said at the last pause instead."""
    pause: RunPaused | None = None
    leaving: BreakoutPending | None = None
    menu: int = 0
    """Sequence number of the last question."""
    spent: dict[str, Spending] = {}
    """By stage; the empty name is for what belongs to none."""
    kept: dict[str, Any] = {}
    reserved: ReservedSpending | None = None

    def allows(self, tool: str) -> bool:
        """Whether the run, and the stage that is open, may use the tool."""
        limits = (self.tools, self.open.tools if self.open else ())
        return all(tool in only for only in limits if only)

    @property
    def issues(self) -> list[str]:
        return [issue for issues in self.wanting.values() for issue in issues]

    def repaired(self, first: str, last: str) -> int:
        return self.repairs.get(first, {}).get(last, 0)

    def asked(self, request_id: str) -> bool:
        """Whether this is the run's open request."""
        return bool(self.reserved and self.reserved.request_id == request_id)

    def tokens(self) -> int:
        return sum(spent.tokens for spent in self.spent.values())

    def usd(self) -> float:
        return sum(spent.usd for spent in self.spent.values())

    def of_stage(self, stage: str) -> Spending:
        return self.spent.get(stage, Spending())

    def apply(self, event: Event, seq: int = 0) -> None:
        self._apply_step(event, seq)
        self._apply_cost(event)
        self._apply_call(event, seq)
        self._apply_answer(event, seq)

    def _apply_step(self, event: Event, seq: int) -> None:
        match event:
            case StageStarted():
                self.step, self.start = "open", ""
                self.open = OpenStage(event.stage_id, event.stage, event.kind, seq, event.tools)
            case StageCompleted():
                self.step, self.open, self.last = "done", None, event.stage
                self.stages[event.stage] = CompletedStage(event.stage_id, event.output, event.blob)
                self.wanting.pop(event.stage, None)
            case GateFailed():
                self.step, self.flawed, self.gate = "flawed", event.stage, event.gate
                self.wanting[event.stage] = [issue[:ISSUE_LENGTH] for issue in event.issues[:MAX_ISSUES]]
            case RunRepaired():
                self.step, self.start = "begin", event.first
                self.repairs.setdefault(event.first, {})[event.last] = event.number
            case RunContinued():
                self.step, self.start, self.rounds = "begin", event.first, event.number
                self.repairs = {}  # each round may be repaired
            case RunPaused():
                self.step, self.pause, self.leaving, self.menu = "paused", event, None, seq
            case BreakoutPending():
                self.leaving, self.menu = event, seq
            case RunResumed():
                self.pause, self.leaving = None, None
                self.step, self.start = ("begin", self.last) if event.again else ("resumed", "")
                self.chosen, self.said = event.choice, event.feedback
                self.add_feedback(event.feedback)

    def add_feedback(self, text: str) -> None:
        """Remember a comment of the user for the stages to come."""
        if len(text) > FEEDBACK_LENGTH:
            text = f"{text[:FEEDBACK_LENGTH]}\n[{len(text) - FEEDBACK_LENGTH:,} more characters left out.]"
        if text:
            self.feedback = [*self.feedback, text][-MAX_FEEDBACK:]

    def _apply_cost(self, event: Event) -> None:
        match event:
            case RequestStarted() | SideAsked():
                self.reserved = ReservedSpending(event.request_id, event.most_tokens, event.most_usd)
            case Answered() | RequestFailed() | SideAnswered():
                reserved, self.reserved = self.reserved, None
                tokens, usd = event.usage.input_tokens + event.usage.output_tokens, event.cost_usd
                if event.usage == Usage() and usd is None and reserved:
                    tokens, usd = reserved.tokens, reserved.usd or None
                name = self.open.stage if self.open else ""
                before = self.of_stage(name)
                known = before.known and usd is not None
                self.spent[name] = Spending(before.tokens + tokens, before.usd + (usd or 0.0), known)
            case SubagentEvent(usage=usage, cost_usd=usd):
                name = self.open.stage if self.open else ""
                before, tokens = self.of_stage(name), usage.input_tokens + usage.output_tokens
                known = before.known and usd is not None
                self.spent[name] = Spending(before.tokens + tokens, before.usd + (usd or 0.0), known)

    def _apply_call(self, event: Event, seq: int) -> None:
        if self.open is None or self.open.kind != "code":
            return
        calls = self.open.calls
        match event:
            case ToolStarted():
                calls[event.call_id] = StageCall(tool=event.tool, kind=event.kind)
            case ToolFinished():
                call = calls.setdefault(event.call_id, StageCall(tool=event.tool, kind="safe"))
                call.status, call.seq = event.status, seq
            case ChangePrepared() if event.call_id in calls and event.by != "command":
                calls[event.call_id].change_id = event.change_id
            case ChangeApplied() | ChangeAbandoned():
                for call in calls.values():
                    if call.change_id == event.change_id:
                        call.applied = isinstance(event, ChangeApplied)

    def _apply_answer(self, event: Event, seq: int) -> None:
        if self.open is None or self.open.kind != "answer":
            return
        match event:
            case Answered():
                self.spoke = True
                if event.end not in ("interrupted", "cancelled"):
                    self.open.answer = seq
                    self.open.unread += event.structured is None
            case HookSpoke(did="demanded"):
                self.open.answer = self.open.unread = 0  # the hook demands another answer


class EndedRun(Struct):
    run_id: str
    seq: int
    """Sequence number of its end."""
    summary: str
    told: int = 0
    """Sequence number of the last message with its summary."""


class Runs(Struct):
    current: RunState | None = None
    paused: RunState | None = None
    """It waits for the user, whatever else they run meanwhile."""
    ended: list[EndedRun] = []
    picked: str = ""
    """The last turn in which the user ran commands from an answer; it does not affect a paused run."""

    def apply(self, recorded: Recorded) -> None:
        match recorded.event:
            case TurnStarted(run_id=to, unrouted=unrouted) if self.paused:
                if unrouted or to not in ("", self.paused.run_id):
                    self.paused = None  # whoever started the turn did not know of this run
            case BatchStarted(turn_id=turn_id):
                self.picked = turn_id
            case RunStarted() as event:
                self.paused = self.paused if event.turn_id == self.picked else None
                self.current = RunState(
                    run_id=event.run_id,
                    pipeline=event.pipeline,
                    sha256=event.sha256,
                    question=event.question,
                    item=event.item,
                    conversational=event.conversational,
                    reads_only=event.reads_only,
                    skips=event.skips,
                    mode=event.mode,
                    tools=event.tools,
                    sources=event.sources,
                    continues=event.continues,
                    kept=event.kept,
                )
            case RunCompleted() | RunFailed() | RunBrokenOff() as event:
                self._end(event, recorded.seq)
            case UserMessage() as event:
                for one in self.ended:
                    one.told = recorded.seq if one.run_id in event.runs else one.told
                feedback = "\n\n".join(filter(None, (event.text.strip(), event.attached)))
                if event.early and self.paused:
                    self.paused.add_feedback(feedback)
                elif event.steering and self.current and not self.current.conversational:
                    self.current.add_feedback(feedback)
            case SessionCopied(how="import"):
                self.current = self.paused = None  # somebody else's: it does not continue here
            case event:
                self._apply_to_run(event, recorded.seq)

    def _apply_to_run(self, event: Event, seq: int) -> None:
        run = self._run_of(event)
        if run:
            run.apply(event, seq)
        match event:
            case RunPaused():
                self.current, self.paused = None, run
            case RunResumed():
                self.current, self.paused = run, None

    def _run_of(self, event: Event) -> RunState | None:
        """The run that an event belongs to; a paused run owns only what is about leaving or resuming it."""
        match event:
            case RunResumed() | BreakoutPending() | SideAsked(purpose="breakout"):
                return self.paused
            case SideAnswered(request_id=request_id) if self.paused and self.paused.asked(request_id):
                return self.paused
            case RunPaused():
                return self.current or self.paused
            case _:
                return self.current

    def _end(self, event: RunCompleted | RunFailed | RunBrokenOff, seq: int) -> None:
        if self.current and self.current.run_id == event.run_id:
            self.current = None
        if self.paused and self.paused.run_id == event.run_id:
            self.paused = None
        if event.summary:
            one = EndedRun(run_id=event.run_id, seq=seq, summary=event.summary)
            self.ended = [*self.ended, one][-MAX_SUMMARIES:]


class SavedRuns(NamedTuple):
    runs: Runs
    routes: RouteState


class RewindableRuns:
    """A fold of runs over a whole session. It must know all rewinds in advance, to save their targets."""

    def __init__(self, events: Iterable[Recorded]) -> None:
        """Reads only the rewinds from `events`; every event is passed to `apply` afterwards."""
        self.runs, self.routes = Runs(), RouteState()
        keeps = {one.event.keep for one in events if isinstance(one.event, Rewound)}
        self._keeps = sorted((keep for keep in keeps if keep is not None), reverse=True)
        self._points: dict[int, SavedRuns] = {}
        self._set_aside: dict[str, SavedRuns] = {}
        self._spent: dict[str, dict[str, Spending]] = {}

    def apply(self, one: Recorded) -> None:
        while self._keeps and self._keeps[-1] < one.seq:
            self._points[self._keeps.pop()] = copy.deepcopy(SavedRuns(self.runs, self.routes))
        match one.event:
            case Rewound(keep=int() as keep, request_id=request_id):
                self._set_aside[request_id] = SavedRuns(self.runs, self.routes)
                self._go_to(copy.deepcopy(self._points[keep]))
            case Redone(rewind_id=rewind_id) if rewind_id in self._set_aside:
                self._go_to(self._set_aside.pop(rewind_id))
            case RunCompleted() | RunFailed() | RunBrokenOff():
                self._save_spending()
            case SessionCopied():  # no rewind and no redo brings back what an import removes
                for point in (*self._points.values(), *self._set_aside.values()):
                    point.runs.apply(one)
                    point.routes.apply(one)
        self.runs.apply(one)
        self.routes.apply(one)

    def _go_to(self, point: SavedRuns) -> None:
        self._save_spending()
        # The user's choices of route and auto-continue are settings, like the mode, and no conversation.
        point.routes.chosen, point.routes.auto_continue = self.routes.chosen, self.routes.auto_continue
        self.runs, self.routes = point
        self.runs.current = None  # before a message, no run is active
        for run in self._active():
            run.spent = copy.deepcopy(self._spent.get(run.run_id, run.spent))

    def _save_spending(self) -> None:
        self._spent.update((run.run_id, run.spent) for run in self._active())

    def _active(self) -> list[RunState]:
        return [run for run in (self.runs.current, self.runs.paused) if run]
