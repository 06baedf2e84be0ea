"""What a session is now: one fold of its events, small whatever the session's length."""

from handrail.protocol.events import (
    Answered,
    ApprovalAnswered,
    ApprovalAsked,
    AttemptStarted,
    ChangeApplied,
    ChangePrepared,
    CommitRefused,
    Committed,
    Compacted,
    CompactionUndone,
    IntentSelected,
    ModelSet,
    ModeSet,
    QuestionAnswered,
    QuestionAsked,
    Recorded,
    Redone,
    RequestFailed,
    Rewound,
    SessionCopied,
    SessionDeleted,
    SessionHooked,
    SessionRenamed,
    SessionRestored,
    SessionStarted,
    SideAnswered,
    SideAsked,
    TodoCompleted,
    TodosChanged,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.values import Kept, Mode, Role, Todo, Usage
from handrail.sessions.background import Background
from handrail.sessions.files_seen import FilesSeen
from handrail.sessions.fold import Fold
from handrail.sessions.routes import Routes
from handrail.sessions.run_state import Runs, RunState
from handrail.sessions.todo_completions import Completions
from handrail.sessions.trace_chain import TraceChain
from handrail.sessions.turn_state import TurnState

SNAPSHOT_VERSION = 16
"""Raised when the fold or its fields change: older snapshots are then thrown away and folded anew."""
TITLE_LENGTH = 60
GOAL_LENGTH = 2_000
UNDOABLE_CUTS = 5
MAPPED_FILES = 1_000


class Cut(Fold):
    """Where compaction stands: events up to `upto` are shown to the model as `summary`."""

    upto: int = 0
    summary: str = ""
    compaction_id: str = ""
    kept: Kept = Kept()


class Aside(Fold):
    """A rewind that can be redone, and what it set aside of the conversation."""

    request_id: str
    change_id: str
    keep: int | None
    upto: int
    """The events between the two are not shown to the model."""
    cut: Cut
    cuts: list[Cut]
    goal: str
    answered: bool = False
    """Something was said since: the messages cannot come back between what is there now."""

    def hides(self, seq: int) -> bool:
        return self.keep is not None and self.keep < seq < self.upto


class Decided(Fold):
    """What the user was asked, and said."""

    asked: ApprovalAsked
    answer: ApprovalAnswered


class State(Fold):
    session_id: str = ""
    workspace: str = ""
    title: str = ""
    goal: str = ""
    """The first message: what compaction must never lose."""
    mode: Mode = "ask"
    mode_said: Mode | None = None
    """The mode the model was told last."""
    models: dict[Role, str] = {}
    deleted: bool = False
    intent: str = ""
    """Id of the active intent."""
    forked_from: str = ""
    copied: str = ""
    """`fork` or `import`, for one that came from another session."""
    turns: int = 0
    last_model: str = ""
    turn: TurnState | None = None
    approvals: dict[str, ApprovalAsked] = {}
    """What waits for the user's decision, by approval id."""
    questions: dict[str, QuestionAsked] = {}
    """What waits for the user's answer, by question id."""
    decided: dict[str, Decided] = {}
    """The user's decisions about calls of the last answer that have not ended, by call id."""
    told: dict[str, QuestionAnswered] = {}
    """The user's answers to questions of the last answer that have not ended, by call id."""
    always: list[str] = []
    """What needs no more asking in this session, by the keys that the gate gave it."""
    todos: list[Todo] = []
    completions: Completions = Completions()
    files: FilesSeen = FilesSeen()
    trace: TraceChain = TraceChain()
    mapped: dict[str, int] = {}
    """Files that the repository map told about, with the message's sequence number; the latest are kept."""
    usage: Usage = Usage()
    cost_usd: float = 0.0
    cost_known: bool = True
    cut: Cut = Cut()
    cuts: list[Cut] = []
    """Earlier cuts, for undoing."""
    side: str = ""
    """A request beside the conversation that was sent and has no end yet."""
    rewinds: list[Aside] = []
    """Rewinds that were not redone, oldest first."""
    committed: int = 0
    """Change sets up to this event are in git, as far as this session put them there, or are elsewhere."""
    uncommitted: bool = False
    """Something changed since the last commit of this session, or since it last tried."""
    hooked: str | None = None
    """What hooks of the session's start told the model; None: they have not run here."""
    background: Background = Background()
    runs: Runs = Runs()
    routes: Routes = Routes()
    """Of both: after a rewind the session's handle sets them to what they were (`standing.py`)."""
    files_before: FilesSeen | None = None
    """What the model had been shown when a turn began that starts afresh with each attempt."""

    def is_aside(self, seq: int) -> bool:
        """Whether a rewind has set the event aside."""
        return any(rewind.hides(seq) for rewind in self.rewinds)

    @property
    def run(self) -> RunState | None:
        """The run that is under way."""
        return self.runs.current

    @property
    def paused(self) -> RunState | None:
        """The run that waits for the user's word."""
        return self.runs.paused

    @property
    def stage_id(self) -> str:
        """The stage that is under way; empty where there is none."""
        return self.run.open.stage_id if self.run and self.run.open else ""

    @property
    def is_apart(self) -> bool:
        """Whether what happens now belongs to a stage alone, and not to the conversation."""
        return bool(self.run and self.run.open and self.run.open.kind in ("ask", "code"))

    def apply(self, recorded: Recorded) -> None:
        """Fold one event in."""
        if self.turn:
            self.turn.apply(recorded.event)
        if isinstance(recorded.event, ChangeApplied):
            self._complete(self.files.prepared.get(recorded.event.change_id))
        self.files.apply(recorded.event, self.turns)
        self.background.apply(recorded)
        self.runs.apply(recorded)
        self.routes.apply(recorded)
        for family in (
            self._turns,
            self._attempts,
            self._asking,
            self._todos,
            self._session,
            self._context,
            self._rewinds,
            self._commits,
        ):
            family(recorded)

    def _turns(self, recorded: Recorded) -> None:
        match recorded.event:
            case UserMessage() as event:
                self.title = self.title or first_line(event.text)
                self.goal = self.goal or event.text[:GOAL_LENGTH]
                self.files.saw(event.files, self.turns + (not event.steering))
                self.files.gone(event.gone, self.turns + (not event.steering))
                mapped = self.mapped | dict.fromkeys(event.mapped, recorded.seq)
                self.mapped = dict(list(mapped.items())[-MAPPED_FILES:])
                if self.turn and not event.steering:
                    # What the turn answers now: a run was left for it, and it has none yet.
                    self.turn.message_seq, self.turn.unrouted = recorded.seq, True
            case TurnStarted() as event:
                self.turns, self.mode_said, self.last_model = event.number, event.mode, event.model
                self.turn = TurnState(
                    turn_id=event.turn_id,
                    number=event.number,
                    model=event.model,
                    started_at=recorded.at,
                    check=event.check,
                    attempts=event.attempts,
                    message_seq=recorded.seq - 1,
                    run_id=event.run_id,
                    unrouted=event.unrouted,
                )
            case TurnFinished():
                self.turn = None
                self.approvals, self.questions, self.decided, self.told = {}, {}, {}, {}
            case ToolFinished() as event:
                self.files.saw(event.files, self.turns)
            case Answered() | RequestFailed() | SideAnswered() as event:
                self._count(event)

    def _attempts(self, recorded: Recorded) -> None:
        match recorded.event:
            case TurnStarted(check=check) if check:
                self.files_before = FilesSeen(files=dict(self.files.files))
            case AttemptStarted(files=files):
                if self.files_before:
                    self.files.files = dict(self.files_before.files)
                self.files.saw(files, self.turns)
            case TurnFinished():
                self.files_before = None

    def _rewinds(self, recorded: Recorded) -> None:
        match recorded.event:
            case Rewound() as event:
                aside = Aside(
                    request_id=event.request_id,
                    change_id=event.change_id,
                    keep=event.keep,
                    upto=recorded.seq,
                    cut=self.cut,
                    cuts=list(self.cuts),
                    goal=self.goal,
                )
                self.rewinds = [*self.rewinds, aside]
                if event.keep is not None:
                    self._set_aside(event.keep, event.turns)
            case Redone() as event:
                self._bring_back(event.rewind_id)
            case UserMessage():
                for aside in self.rewinds:
                    aside.answered = True

    def _commits(self, recorded: Recorded) -> None:
        match recorded.event:
            case ChangeApplied():
                self.uncommitted = True
            case Committed(upto=upto):
                self.committed, self.uncommitted = upto, False
            case CommitRefused():
                self.uncommitted = False
            case SessionCopied(how="import"):
                self.committed, self.uncommitted = recorded.seq, False

    def _set_aside(self, keep: int, turns: int) -> None:
        cuts = [cut for cut in (Cut(), *self.cuts, self.cut) if cut.upto <= keep]
        self.cut, self.cuts = cuts[-1], cuts[1:-1]
        self.mode_said = None
        self.goal = self.goal if turns else ""
        # What the model was shown later it has not seen any more.
        self.files.files = {path: seen for path, seen in self.files.files.items() if seen.turn <= turns}

    def _bring_back(self, rewind_id: str) -> None:
        for aside in self.rewinds:
            if aside.request_id == rewind_id and aside.keep is not None:
                self.cut, self.cuts, self.goal = aside.cut, aside.cuts, aside.goal
        self.rewinds = [aside for aside in self.rewinds if aside.request_id != rewind_id]

    def _asking(self, recorded: Recorded) -> None:
        match recorded.event:
            case ApprovalAsked() as event:
                self.approvals[event.approval_id] = event
                self._waits(recorded.at)
            case ApprovalAnswered() as event:
                if asked := self.approvals.pop(event.approval_id, None):
                    self._goes_on(recorded.at)
                    self.decided[asked.call_id] = Decided(asked=asked, answer=event)
                    self.always += [asked.key] if event.decision == "always" and asked.key else []
            case QuestionAsked() as event:
                self.questions[event.question_id] = event
                self._waits(recorded.at)
            case QuestionAnswered() as event:
                if posed := self.questions.pop(event.question_id, None):
                    self._goes_on(recorded.at)
                    self.told[posed.call_id] = event
            case ToolFinished(call_id=call_id):
                # Some servers give calls of different answers the same id: no decision outlives its call.
                self.decided.pop(call_id, None)
                self.told.pop(call_id, None)
                self.approvals = {
                    key: each for key, each in self.approvals.items() if each.call_id != call_id
                }
                self.questions = {
                    key: each for key, each in self.questions.items() if each.call_id != call_id
                }

    def _waits(self, at: float) -> None:
        if self.turn:
            self.turn.waiting_since = at

    def _goes_on(self, at: float) -> None:
        if self.turn:
            self.turn.waited += max(0.0, at - self.turn.waiting_since)

    def _complete(self, change: ChangePrepared | None) -> None:
        if change:
            self.todos = self.completions.applied(change, self.todos)
            self.trace.applied(change)

    def _todos(self, recorded: Recorded) -> None:
        match recorded.event:
            case TodosChanged() as event:
                self.todos = list(event.todos)
            case TodoCompleted() as event:
                self.todos = [
                    todo.model_copy(update={"done": True}) if todo.id == event.todo_id else todo
                    for todo in self.todos
                ]

    def _session(self, recorded: Recorded) -> None:
        match recorded.event:
            case SessionStarted() as event:
                self.session_id, self.workspace, self.mode = event.session_id, event.workspace, event.mode
                self.forked_from = event.forked_from
            case SessionCopied() as event:
                self.copied = event.how
                self._copied(event)
            case SessionHooked() as event:
                self.hooked = event.text
            case SessionRenamed() as event:
                self.title = event.title
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

    def _copied(self, event: SessionCopied) -> None:
        self.always = []
        self.trace = TraceChain()  # two sessions never go on with one chain
        if event.how == "import":
            # Somebody else's word: no wider mode, no open turn, no file known to be seen, no change begun.
            self.intent = ""
            self.mode, self.models, self.files = "ask", {}, FilesSeen(changed=self.files.changed)
            self.side, self.hooked = "", None
            self.turn, self.approvals, self.questions, self.decided, self.told = None, {}, {}, {}, {}

    def _context(self, recorded: Recorded) -> None:
        match recorded.event:
            case Compacted() as event:
                self.cuts = [*self.cuts, self.cut][-UNDOABLE_CUTS:]
                self.cut = Cut(
                    upto=event.upto,
                    summary=event.summary,
                    compaction_id=event.compaction_id,
                    kept=event.kept,
                )
            case CompactionUndone() if self.cuts:
                self.cut = self.cuts.pop()
            case SideAsked() as event:
                self.side = event.request_id
            case SideAnswered():
                self.side = ""

    def _count(self, event: Answered | RequestFailed | SideAnswered) -> None:
        self.usage = self.usage + event.usage
        self.cost_usd += event.cost_usd or 0.0
        self.cost_known = self.cost_known and event.cost_usd is not None


def first_line(text: str) -> str:
    """A title from a message."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
