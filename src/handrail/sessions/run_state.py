"""What is known of a run: enough for any process to go on with it, and no more than its pipeline is long."""

from typing import Any, Literal

from handrail.protocol.events import (
    Answered,
    BatchStarted,
    BreakoutPending,
    CallStatus,
    ChangeAbandoned,
    ChangeApplied,
    ChangePrepared,
    Event,
    GateFailed,
    HookSpoke,
    Recorded,
    RequestFailed,
    RequestStarted,
    RunBrokenOff,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunRepaired,
    RunResumed,
    RunStarted,
    SessionCopied,
    SideAnswered,
    SideAsked,
    StageCompleted,
    StageStarted,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.events.runs import StageKind
from handrail.protocol.values import ToolKind, Usage
from handrail.sessions.fold import Fold

SUMMARIES = 5
"""Ended runs that later turns are told of."""
FEEDBACK, FEEDBACK_LENGTH = 4, 8_000
"""Words of the user that a run remembers, the latest first to last."""
ISSUES, ISSUE_LENGTH = 20, 500


class StageDone(Fold):
    stage_id: str
    output: dict[str, Any] | None
    blob: str = ""


class StageCall(Fold):
    """A tool call of a stage of code."""

    tool: str
    kind: ToolKind
    status: CallStatus | None = None
    """None: it was begun, and nobody knows how it ended."""
    seq: int = 0
    """Where its end stands in the log."""
    change_id: str = ""
    applied: bool = False


class OpenStage(Fold):
    stage_id: str
    stage: str
    kind: StageKind
    seq: int = 0
    """Where it begins in the log."""
    calls: dict[str, StageCall] = {}
    """Of a stage of code, by call id: what is done is not done again."""
    answer: int = 0
    """Of a stage that is one answer: where the last whole one stands in the log."""
    unread: int = 0
    """How many of them could not be read."""


class Spent(Fold):
    tokens: int = 0
    usd: float = 0.0
    known: bool = True
    """False: the price of something is not known."""


class Reserved(Fold):
    """What an open request may come to; it counts where nobody says what it came to."""

    request_id: str
    tokens: int
    usd: float


class RunState(Fold):
    run_id: str
    pipeline: str
    sha256: str = ""
    """Of the files that define the pipeline; empty: it comes with Handrail."""
    question: str = ""
    conversational: bool = False
    reads_only: bool = False
    skips: tuple[str, ...] = ()
    continues: bool = False
    rounds: int = 1
    """How often the stages were begun that are done once for each step."""
    spoke: bool = False
    """The conversation has its answer, and tells of it."""
    step: Literal["begin", "open", "done", "flawed", "paused", "resumed"] = "begin"
    start: str = ""
    """The stage to begin with; empty: the first."""
    open: OpenStage | None = None
    last: str = ""
    """The stage that was completed last."""
    stages: dict[str, StageDone] = {}
    """The latest output of each."""
    flawed: str = ""
    """The stage whose output was found wanting last."""
    gate: str = ""
    """What found it so."""
    wanting: dict[str, list[str]] = {}
    """What is wrong with outputs, by stage, until each is completed again."""
    repairs: dict[str, dict[str, int]] = {}
    """How often stages were done again, by the names of the first and the last of them."""
    feedback: list[str] = []
    chosen: str = ""
    """The line of the last menu that the user chose."""
    pause: RunPaused | None = None
    leaving: BreakoutPending | None = None
    menu: int = 0
    """Where what was asked last stands in the log."""
    spent: dict[str, Spent] = {}
    """By stage; what belongs to none is under an empty name."""
    kept: dict[str, Any] = {}
    """What earlier runs kept."""
    reserved: Reserved | None = None

    @property
    def issues(self) -> list[str]:
        """All that is to be mended."""
        return [issue for issues in self.wanting.values() for issue in issues]

    def repaired(self, first: str, last: str) -> int:
        """How often these stages were done again."""
        return self.repairs.get(first, {}).get(last, 0)

    def asked(self, request_id: str) -> bool:
        """Whether the request is the run's, and is open."""
        return bool(self.reserved and self.reserved.request_id == request_id)

    def tokens(self) -> int:
        return sum(spent.tokens for spent in self.spent.values())

    def usd(self) -> float:
        return sum(spent.usd for spent in self.spent.values())

    def of_stage(self, stage: str) -> Spent:
        return self.spent.get(stage, Spent())

    def apply(self, event: Event, seq: int = 0) -> None:
        self._stages(event, seq)
        self._pauses(event, seq)
        self._money(event)
        self._calls(event, seq)
        self._answers(event, seq)

    def _stages(self, event: Event, seq: int) -> None:
        match event:
            case StageStarted():
                self.step, self.start = "open", ""
                self.open = OpenStage(stage_id=event.stage_id, stage=event.stage, kind=event.kind, seq=seq)
            case StageCompleted():
                self.step, self.open, self.last = "done", None, event.stage
                self.stages[event.stage] = StageDone(
                    stage_id=event.stage_id, output=event.output, blob=event.blob
                )
                self.wanting.pop(event.stage, None)
            case GateFailed():
                self.step, self.flawed, self.gate = "flawed", event.stage, event.gate
                self.wanting[event.stage] = [issue[:ISSUE_LENGTH] for issue in event.issues[:ISSUES]]
            case RunRepaired():
                self.step, self.start = "begin", event.first
                self.repairs.setdefault(event.first, {})[event.last] = event.number
            case RunContinued():
                self.step, self.start, self.rounds = "begin", event.first, event.number

    def _pauses(self, event: Event, seq: int) -> None:
        match event:
            case RunPaused():
                self.step, self.pause, self.leaving, self.menu = "paused", event, None, seq
            case BreakoutPending():
                self.leaving, self.menu = event, seq
            case RunResumed():
                self.pause, self.leaving = None, None
                self.step, self.start = ("begin", self.last) if event.again else ("resumed", "")
                self.chosen = event.choice
                self._hear(event.feedback)

    def hear(self, message: UserMessage) -> None:
        """Remember what the user said while nothing was asked: the stages to come are told."""
        self._hear("\n\n".join(filter(None, (message.text.strip(), message.attached))))

    def _hear(self, words: str) -> None:
        if words:
            self.feedback = [*self.feedback, _clipped(words)][-FEEDBACK:]

    def _money(self, event: Event) -> None:
        match event:
            case RequestStarted() | SideAsked():
                self.reserved = Reserved(
                    request_id=event.request_id, tokens=event.most_tokens, usd=event.most_usd
                )
            case Answered() | RequestFailed() | SideAnswered():
                untold = event.usage == Usage() and event.cost_usd is None
                reserved, self.reserved = self.reserved, None
                if untold and reserved:
                    self._count(reserved.tokens, reserved.usd, known=reserved.usd > 0)
                else:
                    self._used(event.usage, event.cost_usd)

    def _used(self, usage: Usage, usd: float | None) -> None:
        self._count(usage.input_tokens + usage.output_tokens, usd or 0.0, known=usd is not None)

    def _count(self, tokens: int, usd: float, *, known: bool) -> None:
        name = self.open.stage if self.open else ""
        before = self.of_stage(name)
        self.spent[name] = Spent(
            tokens=before.tokens + tokens, usd=before.usd + usd, known=before.known and known
        )

    def _calls(self, event: Event, seq: int) -> None:
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

    def _answers(self, event: Event, seq: int) -> None:
        if self.open is None or self.open.kind != "answer":
            return
        match event:
            case Answered():
                self.spoke = True
                if event.end not in ("interrupted", "cancelled"):
                    self.open.answer = seq
                    self.open.unread += event.structured is None
            case HookSpoke(did="demanded"):
                self.open.answer = self.open.unread = 0  # another answer is wanted


class Ended(Fold):
    """A run that is over, as later turns are told of it."""

    run_id: str
    seq: int
    """Where it ended."""
    summary: str
    told: int = 0
    """The last message that the summary went with."""


class Runs(Fold):
    """The run that is under way, the one that is paused, and the last that ended."""

    current: RunState | None = None
    paused: RunState | None = None
    """It waits for the user's word, whatever else they let run meanwhile."""
    ended: list[Ended] = []
    picked: str = ""
    """The last turn in which the user ran commands from an answer: it leaves a paused run as it is."""

    def apply(self, recorded: Recorded) -> None:
        match recorded.event:
            case TurnStarted(run_id=to, unrouted=unrouted) if self.paused:
                if unrouted or to not in ("", self.paused.run_id):
                    self.paused = None  # whoever began the turn knew of no such run
            case BatchStarted(turn_id=turn_id):
                self.picked = turn_id
            case RunStarted() as event:
                self.paused = self.paused if event.turn_id == self.picked else None
                self.current = RunState(
                    run_id=event.run_id,
                    pipeline=event.pipeline,
                    sha256=event.sha256,
                    question=event.question,
                    conversational=event.conversational,
                    reads_only=event.reads_only,
                    skips=event.skips,
                    continues=event.continues,
                    kept=event.kept,
                )
            case RunCompleted() | RunFailed() | RunBrokenOff() as event:
                self._end(event, recorded.seq)
            case UserMessage() as event:
                for one in self.ended:
                    one.told = recorded.seq if one.run_id in event.runs else one.told
                self._hear(event)
            case SessionCopied(how="import"):
                self.current = self.paused = None  # somebody else's: nothing of it goes on here
            case event:
                self._go_on(event, recorded.seq)

    def _hear(self, message: UserMessage) -> None:
        """What is said to a run before it asked, or while it works; the conversation hears by itself."""
        if message.early and self.paused:
            self.paused.hear(message)
        elif message.steering and self.current and not self.current.conversational:
            self.current.hear(message)

    def _go_on(self, event: Event, seq: int) -> None:
        run = self._concerned(event)
        if run:
            run.apply(event, seq)
        match event:
            case RunPaused():
                self.current, self.paused = None, run
            case RunResumed():
                self.current, self.paused = run, None

    def _concerned(self, event: Event) -> RunState | None:
        """The run that an event belongs to; what else is asked while one is paused is not its own."""
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
            one = Ended(run_id=event.run_id, seq=seq, summary=event.summary)
            self.ended = [*self.ended, one][-SUMMARIES:]


def _clipped(text: str) -> str:
    if len(text) <= FEEDBACK_LENGTH:
        return text
    return f"{text[:FEEDBACK_LENGTH]}\n[{len(text) - FEEDBACK_LENGTH:,} more characters left out.]"
