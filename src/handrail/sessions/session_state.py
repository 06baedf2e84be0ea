"""State of a session: a fold of its events whose size does not grow with the session."""

from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.protocol.events import Recorded
from handrail.protocol.events.approvals import (
    ApprovalAnswered,
    ApprovalAsked,
    QuestionAnswered,
    QuestionAsked,
)
from handrail.protocol.events.changes import ChangeApplied, CommitRefused, Committed, Redone, Rewound
from handrail.protocol.events.checks import AttemptStarted
from handrail.protocol.events.conversation import TurnFinished, TurnStarted, UserMessage
from handrail.protocol.events.intents import IntentSelected
from handrail.protocol.events.requests import (
    Answered,
    AnswerReceived,
    Compacted,
    CompactionUndone,
    RequestFailed,
    SideAnswered,
    SideAsked,
)
from handrail.protocol.events.runs import RunStarted
from handrail.protocol.events.session import (
    ModelSet,
    ModeSet,
    SessionCopied,
    SessionDeleted,
    SessionLabelled,
    SessionRenamed,
    SessionRestored,
    SessionStarted,
    SessionStatusSet,
    SessionTitled,
    TodoCompleted,
    TodosChanged,
)
from handrail.protocol.events.subagents import SubagentEvent, SubagentFinished, SubagentStarted
from handrail.protocol.events.tools import SessionHooked, ToolFinished
from handrail.protocol.values import (
    NARROWER_MODES,
    PLAN_ROUTE,
    CompactionSummary,
    Mode,
    Role,
    SessionStatus,
    Todo,
    Usage,
)
from handrail.sessions.files_seen import FilesSeen
from handrail.sessions.projections import (
    BackgroundState,
    LastTurn,
    PlanState,
    RouteState,
    TodoCompletions,
    TraceChain,
    plan_after,
)
from handrail.sessions.run_state import Runs, RunState
from handrail.sessions.turn_state import TurnState

SNAPSHOT_VERSION = 23
"""Incremented when the fold or its fields change; older snapshots are then discarded."""
TITLE_LENGTH = 60
GOAL_LENGTH = 2_000
UNDOABLE_CUTS = 5
MAPPED_FILES = 1_000
MAX_INTERRUPTED = 20


class CompactionCut(Struct):
    """The last compaction: the model sees `summary` in place of the events up to `upto`."""

    upto: int = 0
    summary: str = ""
    compaction_id: str = ""
    kept: CompactionSummary = CompactionSummary()


class RedoableRewind(Struct):
    """A rewind that can be redone, and the part of the conversation it set aside."""

    request_id: str
    change_id: str
    keep: int | None
    upto: int
    """The model does not see the events between `keep` and this one."""
    cut: CompactionCut
    cuts: list[CompactionCut]
    goal: str
    answered: bool = False
    """The conversation has continued, so the messages cannot come back."""

    def hides(self, seq: int) -> bool:
        return self.keep is not None and self.keep < seq < self.upto


class UserDecision(Struct):
    asked: ApprovalAsked
    answer: ApprovalAnswered


class OpenSubagent(Struct):
    call_id: str
    parent: str
    depth: int
    seq: int
    """Of its start."""
    task: str = ""
    """Its first words."""
    interrupted: bool = False


class SessionState(Struct):
    session_id: str = ""
    workspace: str = ""
    title: str = ""
    named: bool = False
    """The title is the user's or a model's, and not the first words of the first message."""
    status: SessionStatus = "open"
    labels: list[str] = []
    goal: str = ""
    """The first message, which compaction never drops."""
    mode: Mode = "ask"
    mode_said: Mode | None = None
    models: dict[Role, str] = {}
    deleted: bool = False
    intent: str = ""
    forked_from: str = ""
    copied: str = ""
    """`fork` or `import`, for one that came from another session."""
    turns: int = 0
    last_model: str = ""
    turn: TurnState | None = None
    approvals: dict[str, ApprovalAsked] = {}
    questions: dict[str, QuestionAsked] = {}
    decided: dict[str, UserDecision] = {}
    """The user's decisions about unfinished calls of the last answer, by call id."""
    told: dict[str, QuestionAnswered] = {}
    """The user's answers to unfinished calls of the last answer, by call id."""
    always: list[str] = []
    """Approval keys that the user answered with `always`."""
    todos: list[Todo] = []
    completions: TodoCompletions = field(default_factory=TodoCompletions)
    plan: PlanState | None = None
    files: FilesSeen = field(default_factory=FilesSeen)
    trace: TraceChain = field(default_factory=TraceChain)
    mapped: dict[str, int] = {}
    """{file in an attached repository map: sequence number of the message}; only the latest."""
    usage: Usage = Usage()
    cost_usd: float = 0.0
    cost_known: bool = True
    cut: CompactionCut = field(default_factory=CompactionCut)
    cuts: list[CompactionCut] = []
    """Earlier cuts, to undo a compaction."""
    last: LastTurn | None = None
    side: str = ""
    side_raw: str = ""
    """The stored bytes of the side request's answer, if all have come."""
    rewinds: list[RedoableRewind] = []
    """Rewinds that were not redone, oldest first."""
    committed: int = 0
    """This session has committed its change sets up to this event, or has imported them."""
    uncommitted: bool = False
    """Something changed since this session last committed or tried to."""
    hooked: str | None = None
    """What session-start hooks told the model; None: they have not run."""
    background: BackgroundState = field(default_factory=BackgroundState)
    runs: Runs = field(default_factory=Runs)
    routes: RouteState = field(default_factory=RouteState)
    """After a rewind, `Session` restores this and `runs` (`RewindableRuns`)."""
    subagents: dict[str, OpenSubagent] = {}
    """Those that run, and those that were interrupted and can go on."""
    files_before: FilesSeen | None = None
    """What the model had seen at the start of a turn with attempts; each attempt starts from it."""

    @property
    def run(self) -> RunState | None:
        return self.runs.current

    @property
    def paused(self) -> RunState | None:
        return self.runs.paused

    @property
    def running_subagents(self) -> dict[str, OpenSubagent]:
        return {name: one for name, one in self.subagents.items() if not one.interrupted}

    @property
    def allowed_mode(self) -> Mode:
        """The mode by which calls are decided: the session's, or the run's where that is narrower."""
        run = self.run
        if run and run.pipeline == PLAN_ROUTE:
            return "plan"  # a plan is made without changes, also if the user changes the mode meanwhile
        return run.mode if run and run.mode in NARROWER_MODES[self.mode] else self.mode

    @property
    def stage_id(self) -> str:
        """The running stage; empty if there is none."""
        return self.run.open.stage_id if self.run and self.run.open else ""

    @property
    def is_apart(self) -> bool:
        """Whether events now belong to a stage and not to the conversation."""
        return bool(self.run and self.run.open and self.run.open.kind in ("ask", "code"))

    def apply(self, recorded: Recorded) -> None:
        if self.turn:
            self.turn.apply(recorded.event)
        change_id = recorded.event.change_id if isinstance(recorded.event, ChangeApplied) else ""
        if change := self.files.prepared.get(change_id):
            self.todos = self.completions.applied(change, self.todos)
            self.trace.applied(change)
        self.files.apply(recorded.event, self.turns)
        self.plan = plan_after(recorded, self.plan, self.turns)
        self.background.apply(recorded)
        self.runs.apply(recorded)
        self.routes.apply(recorded)
        self._apply_turn(recorded)
        self._apply_last_turn(recorded)
        self._apply_question(recorded)
        self._apply_settings(recorded)
        self._apply_context(recorded)
        self._apply_rewind(recorded)
        self._apply_subagents(recorded)

    def _apply_turn(self, recorded: Recorded) -> None:
        match recorded.event:
            case UserMessage() as event:
                self.title = self.title or first_line(event.text)
                self.goal = self.goal or event.text[:GOAL_LENGTH]
                self.files.record_seen(event.files, self.turns + (not event.steering))
                self.files.record_deleted(event.gone, self.turns + (not event.steering))
                mapped = self.mapped | dict.fromkeys(event.mapped, recorded.seq)
                self.mapped = dict(list(mapped.items())[-MAPPED_FILES:])
                if self.turn and not event.steering:
                    # The user left a run for this message: the turn answers it now, and has no route yet.
                    self.turn.message_seq, self.turn.unrouted = recorded.seq, True
            case TurnStarted() as event:
                if self.status in ("done", "archived"):  # it is used again
                    self.status = "in_progress"
                self.turns, self.mode_said, self.last_model = event.number, event.mode, event.model
                self.turn = TurnState(
                    turn_id=event.turn_id,
                    number=event.number,
                    model=event.model,
                    started_at=recorded.at,
                    check=event.check,
                    attempts=event.attempts,
                    message_seq=event.repeats or recorded.seq - 1,
                    run_id=event.run_id,
                    unrouted=event.unrouted,
                )
                if event.check:
                    self.files_before = FilesSeen(files=dict(self.files.files))
            case AttemptStarted(files=files):
                if self.files_before:
                    self.files.files = dict(self.files_before.files)
                self.files.record_seen(files, self.turns)
            case TurnFinished():
                self.turn = self.files_before = None
                self.approvals, self.questions, self.decided, self.told = {}, {}, {}, {}
            case ToolFinished() as event:
                self.files.record_seen(event.files, self.turns)
            case Answered() | RequestFailed() | SideAnswered() | SubagentEvent() as event:
                self.usage = self.usage + event.usage
                self.cost_usd += event.cost_usd or 0.0
                self.cost_known = self.cost_known and event.cost_usd is not None

    def _apply_last_turn(self, recorded: Recorded) -> None:
        match recorded.event:
            case RunStarted() as event if self.turn:
                self.last = LastTurn(
                    message=self.turn.message_seq,
                    pipeline=event.pipeline,
                    reads_only=event.reads_only,
                    skips=event.skips,
                    check=self.turn.check,
                    attempts=self.turn.attempts,
                )
            case Rewound(keep=int()) | Redone(conversation=True) | SessionCopied(how="import"):
                self.last = None
            case _:
                if self.last:
                    self.last.apply(recorded)

    def _apply_rewind(self, recorded: Recorded) -> None:
        match recorded.event:
            case Rewound() as event:
                rewind = RedoableRewind(
                    request_id=event.request_id,
                    change_id=event.change_id,
                    keep=event.keep,
                    upto=recorded.seq,
                    cut=self.cut,
                    cuts=list(self.cuts),
                    goal=self.goal,
                )
                self.rewinds = [*self.rewinds, rewind]
                if event.keep is not None:
                    cuts = [cut for cut in (CompactionCut(), *self.cuts, self.cut) if cut.upto <= event.keep]
                    self.cut, self.cuts = cuts[-1], cuts[1:-1]
                    self.mode_said = None
                    self.goal = self.goal if event.turns else ""
                    # The model no longer knows what it was shown later.
                    kept = [item for item in self.files.files.items() if item[1].turn <= event.turns]
                    self.files.files = dict(kept)
            case Redone(rewind_id=rewind_id):
                for rewind in self.rewinds:
                    if rewind.request_id == rewind_id and rewind.keep is not None:
                        self.cut, self.cuts, self.goal = rewind.cut, rewind.cuts, rewind.goal
                self.rewinds = [rewind for rewind in self.rewinds if rewind.request_id != rewind_id]
            case UserMessage():
                for rewind in self.rewinds:
                    rewind.answered = True

    def _apply_question(self, recorded: Recorded) -> None:
        match recorded.event:
            case ApprovalAsked() as event:
                self.approvals[event.approval_id] = event
                self._start_waiting(recorded.at)
            case ApprovalAnswered() as event:
                if asked := self.approvals.pop(event.approval_id, None):
                    self._stop_waiting(recorded.at)
                    self.decided[asked.call_id] = UserDecision(asked=asked, answer=event)
                    self.always += [asked.key] if event.decision == "always" and asked.key else []
            case QuestionAsked() as event:
                self.questions[event.question_id] = event
                self._start_waiting(recorded.at)
            case QuestionAnswered() as event:
                if question := self.questions.pop(event.question_id, None):
                    self._stop_waiting(recorded.at)
                    self.told[question.call_id] = event
            case ToolFinished(call_id=call_id):
                # Some servers give calls of different answers the same id: no decision outlives its call.
                self.decided.pop(call_id, None)
                self.told.pop(call_id, None)
                self.approvals = {key: one for key, one in self.approvals.items() if one.call_id != call_id}
                # Those that were asked while the call ran are numbered.
                self.questions = {
                    key: one
                    for key, one in self.questions.items()
                    if one.call_id.partition("#")[0] != call_id
                }
            case SubagentFinished(subagent_id=ended):
                self._forget_questions(lambda call_id: call_id.startswith(f"{ended}."))
            case SubagentEvent(subagent_id=who, event={"type": "tool_finished", "call_id": str() as call}):
                self._forget_questions(lambda call_id: call_id == f"{who}.{call}")

    def _forget_questions(self, of_call: Callable[[str], bool]) -> None:
        """Forget questions of ended calls of sub-agents: no decision outlives its call."""
        self.decided = {call_id: one for call_id, one in self.decided.items() if not of_call(call_id)}
        self.told = {call_id: one for call_id, one in self.told.items() if not of_call(call_id)}
        self.approvals = {key: one for key, one in self.approvals.items() if not of_call(one.call_id)}
        self.questions = {key: one for key, one in self.questions.items() if not of_call(one.call_id)}

    def _apply_subagents(self, recorded: Recorded) -> None:
        match recorded.event:
            case SubagentStarted() as event:
                before = self.subagents.pop(event.subagent_id, None)
                seq = before.seq if before else recorded.seq
                task = first_line(event.task)
                self.subagents[event.subagent_id] = OpenSubagent(
                    event.call_id, event.parent, event.depth, seq, task
                )
            case SubagentFinished(subagent_id=ended, report=report):
                known = self.subagents.pop(ended, None)
                if known and report.reason == "interrupted":
                    known.interrupted = True
                    self.subagents[ended] = known
                    kept = [key for key, one in self.subagents.items() if one.interrupted][:-MAX_INTERRUPTED]
                    self.subagents = {key: one for key, one in self.subagents.items() if key not in kept}
            case Rewound(keep=int() as keep):
                self.subagents = {key: one for key, one in self.subagents.items() if one.seq <= keep}
            case SessionCopied():
                self.subagents = {}

    def _start_waiting(self, at: float) -> None:
        if self.turn:
            self.turn.waiting_since = at

    def _stop_waiting(self, at: float) -> None:
        if self.turn:
            self.turn.waited += max(0.0, at - self.turn.waiting_since)

    def _apply_settings(self, recorded: Recorded) -> None:
        match recorded.event:
            case SessionStarted() as event:
                self.session_id, self.workspace, self.mode = event.session_id, event.workspace, event.mode
                self.forked_from = event.forked_from
            case SessionCopied(how=how):
                self.copied, self.always = how, []
                self.status = "open" if how == "fork" else self.status
                self.trace = TraceChain()  # two sessions never continue the same chain
                if how == "import":
                    # From somebody else: no wider mode, no open turn, no file seen, no change started.
                    self.mode, self.models, self.files = "ask", {}, FilesSeen(changed=self.files.changed)
                    self.intent, self.side, self.hooked = "", "", None
                    self.turn, self.approvals, self.questions, self.decided, self.told = None, {}, {}, {}, {}
            case SessionHooked() as event:
                self.hooked = event.text
            case SessionRenamed() as event:
                self.title, self.named = event.title, True
            case SessionTitled() as event if not self.named:
                self.title, self.named = event.title, True
            case SessionStatusSet() as event:
                self.status = event.status
            case SessionLabelled() as event:
                self.labels = list(event.labels)
            case SessionDeleted():
                self.deleted = True
            case SessionRestored():
                self.deleted = False
            case ModeSet() as event:
                self.mode = event.mode
            case ModelSet() as event:
                self.models[event.role] = event.model
            case IntentSelected() as event:
                self.intent = event.intent_id

    def _apply_context(self, recorded: Recorded) -> None:
        match recorded.event:
            case TodosChanged() as event:
                self.todos = list(event.todos)
            case TodoCompleted(todo_id=done):
                self.todos = [replace(todo, done=True) if todo.id == done else todo for todo in self.todos]
            case Compacted() as event:
                self.cuts = [*self.cuts, self.cut][-UNDOABLE_CUTS:]
                self.cut = CompactionCut(event.upto, event.summary, event.compaction_id, event.kept)
            case CompactionUndone() if self.cuts:
                self.cut = self.cuts.pop()
            case SideAsked() as event:
                self.side, self.side_raw = event.request_id, ""
            case AnswerReceived() as event if event.request_id == self.side:
                self.side_raw = event.raw
            case SideAnswered():
                self.side = ""
            case ChangeApplied():
                self.uncommitted = True
            case Committed(upto=upto):
                self.committed, self.uncommitted = upto, False
            case CommitRefused():
                self.uncommitted = False
            case SessionCopied(how="import"):
                self.committed, self.uncommitted = recorded.seq, False


def first_line(text: str) -> str:
    """A title: the first line of a message, shortened."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
