"""Small projections: background commands, todos, plan, trace, route."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from handrail.protocol.events.base import Recorded
from handrail.protocol.events.changes import ChangePrepared
from handrail.protocol.events.conversation import (
    AutoContinueSet,
    Routed,
    RouteSet,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.events.plans import PlanApproved, PlanChanged
from handrail.protocol.events.requests import Answered, RequestFailed
from handrail.protocol.events.runs import RunStarted, StageStarted
from handrail.protocol.events.session import SessionCopied
from handrail.protocol.events.tools import BackgroundEnded, BackgroundStarted
from handrail.protocol.plan import Plan, PlanStep
from handrail.protocol.values import TaskFilter, Todo

MAX_ENDED = 20
REMEMBERED_CHANGES = 200


class BackgroundCommand(Struct):
    id: str
    command: str
    since: float


class BackgroundState(Struct):
    running: dict[str, BackgroundCommand] = {}
    ended: list[BackgroundEnded] = []
    """Those the model has not been told about; only the latest."""
    count: int = 0

    @property
    def next_id(self) -> str:
        return f"b{self.count + 1}"

    def apply(self, recorded: Recorded) -> None:
        match recorded.event:
            case BackgroundStarted(background_id=new, command=command):
                self.count += 1
                self.running[new] = BackgroundCommand(new, command, recorded.at)
            case BackgroundEnded() as event:
                self.running.pop(event.background_id, None)
                self.ended = [*self.ended, event][-MAX_ENDED:]
            case TurnStarted():
                self.ended = []  # its message tells the model
            case SessionCopied():
                self.running, self.ended = {}, []  # they belong to the other session


class LastTurn(Struct):
    """The last turn that asked a model in the conversation: what repeating or continuing it needs."""

    message: int
    """Sequence number of its message."""
    pipeline: str
    reads_only: bool
    skips: tuple[str, ...]
    stage: str = ""
    """The last stage that was started."""
    check: str = ""
    attempts: int = 1
    recovered: int = 0
    """Sequence number of the event that has the complete parts of its last answer, if that was cut."""

    def apply(self, recorded: Recorded) -> None:
        match recorded.event:
            case StageStarted(stage=stage, kind="work" | "answer"):
                self.stage = stage
            case Answered(apart=False) as event:
                self.recovered = recorded.seq if event.recovered else 0
            case RequestFailed(recovered=parts) if parts:
                self.recovered = recorded.seq


class TodoCompletions(Struct):
    completed: dict[str, tuple[str, ...]] = {}
    """{change set: todos that it completed}, latest last"""
    reopened: dict[str, tuple[str, ...]] = {}
    """{change set that undid others: todos that it opened again}"""

    def applied(self, change: ChangePrepared, todos: Sequence[Todo]) -> list[Todo]:
        """The todo list after a change set was applied."""
        done = [*change.todos, *_todos_of(self.reopened, change.takes_back)]
        undone = _todos_of(self.completed, change.takes_back)
        done = [todo.id for todo in todos if todo.id in done and not (todo.done or todo.command)]
        undone = [todo.id for todo in todos if todo.id in undone and todo.done]
        _remember(self.completed, change.change_id, done)
        _remember(self.reopened, change.change_id, undone)
        changed = {*done, *undone}
        return [replace(todo, done=todo.id in done) if todo.id in changed else todo for todo in todos]


def _todos_of(known: dict[str, tuple[str, ...]], changes: Collection[str]) -> list[str]:
    return [todo for change in changes for todo in known.get(change, ())]


def _remember(known: dict[str, tuple[str, ...]], change: str, todos: list[str]) -> None:
    if todos:
        known[change] = tuple(todos)
    while len(known) > REMEMBERED_CHANGES:
        del known[next(iter(known))]


class OpenStep(NamedTuple):
    number: int
    """Its place in the plan, from 1."""
    step: PlanStep
    todo: str


class PlanState(Struct):
    plan_id: str
    plan: Plan
    turn: int
    """The number of the turn in which it came."""
    approved: bool = False
    todos: tuple[str, ...] = ()
    """The todo of each step, once it is approved; before that, those of the plan that the user edited."""
    replaced: tuple[str, ...] = ()
    """Todos of followed plans that the model has planned anew; their open ones end with the approval."""

    def open_steps(self, todos: Sequence[Todo]) -> list[OpenStep]:
        """The steps of an approved plan that are not done."""
        if not self.approved:
            return []
        left = {todo.id for todo in todos if not todo.done}
        steps = zip(self.plan.steps, self.todos, strict=True)
        return [OpenStep(at, step, todo) for at, (step, todo) in enumerate(steps, start=1) if todo in left]


def plan_after(recorded: Recorded, plan: PlanState | None, turn: int) -> PlanState | None:
    """The session's plan after an event."""
    match recorded.event:
        case PlanChanged() as event:
            todos, replaced = (plan.todos, plan.replaced) if plan else ((), ())
            if event.by == "model":  # a step of the same words is another one
                todos, replaced = (), (*replaced, *todos)
            return PlanState(event.plan_id, event.plan, turn, todos=todos, replaced=replaced)
        case PlanApproved() as event if plan and plan.plan_id == event.plan_id:
            return replace(plan, approved=True, todos=event.todos, replaced=())
        case SessionCopied(how="import") if plan:
            return PlanState(plan.plan_id, plan.plan, turn)  # somebody else approved it
        case _:
            return plan


class TraceChain(Struct):
    writer: str = ""
    """Empty: nothing was written."""
    count: int = 0
    head: str = ""

    def applied(self, change: ChangePrepared) -> None:
        if mark := change.trace:
            self.writer, self.head = mark.writer, mark.lines[-1]
            self.count = mark.number + len(mark.lines) - 1


CONFIRMED_SECONDS = 600.0


class RouteState(Struct):
    chosen: str = ""
    """By the user; empty: the default."""
    auto_continue: bool | None = None
    """Set by the user; None: as the settings say."""
    last: str = ""
    asked: Routed | None = None
    """The question that the user's next message answers."""
    asked_at: int = 0
    where: TaskFilter | None = None
    """The tasks that the last message is about, where the router knows."""
    confirmed: TaskFilter | None = None
    """The tasks that the user has picked in the last minutes: a short message probably means them again."""
    confirmed_at: float = 0.0

    def question_for(self, seen: int | None) -> Routed | None:
        """The question that a message answers whose sender has seen the events up to `seen`."""
        return self.asked if seen is None or seen >= self.asked_at else None

    def apply(self, recorded: Recorded) -> None:
        match recorded.event:
            case RouteSet() as event:
                self.chosen = event.route
            case AutoContinueSet() as event:
                self.auto_continue = event.on
            case RunStarted() as event:
                self.last = event.pipeline
            case UserMessage(steering=False):
                self.asked = self.where = None
                if recorded.at - self.confirmed_at > CONFIRMED_SECONDS:
                    self.confirmed = None
            case Routed(route="") as event:
                self.asked, self.asked_at = event, recorded.seq
            case Routed() as event:
                self.where = event.decision.where
                if event.by == "answer" and self.where is not None:
                    self.confirmed, self.confirmed_at = self.where, recorded.at
            case SessionCopied(how="import"):
                self.chosen, self.auto_continue = "", None  # somebody else chose them
                self.asked = self.confirmed = None
