"""A split request, computed from its session's events: every subtask, what it cost, conflicts, the end."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from handrail.protocol.events import (
    AnswerReceived,
    ChangeApplied,
    ConflictSettled,
    ConflictsFound,
    Event,
    Recorded,
    SideAnswered,
    SideAsked,
    SplitEnded,
    SplitPaused,
    SplitPlanned,
    SplitResumed,
    SplitStalled,
    SplitStarted,
    SplitVerified,
    SubtaskDone,
    SubtaskFailed,
    SubtasksCancelled,
    SubtasksReset,
    SubtaskStarted,
)
from handrail.protocol.subtask import PlanSource, SplitConflict, SplitPlan, SubtaskStatus
from handrail.protocol.values import Usage

SUBTASK_PURPOSE = "subtask"


def subtask_key(subtask_id: str, round_: int, attempt: int) -> str:
    """The idempotency key of a subtask's request; `round_` counts how often the user wanted it anew."""
    return f"{subtask_id}/{round_}/{attempt}"


def request_key(what: str, number: int = 1) -> str:
    """The key of a request that is for no subtask: no subtask's id has a colon."""
    return f":{what}/0/{number}"


class SubtaskState(Struct):
    status: SubtaskStatus = "waiting"
    attempt: int = 0
    round: int = 0
    began: float = 0.0
    seconds: float = 0.0
    tokens: int = 0
    usd: float = 0.0
    detail: str = ""
    """Why it failed, also while it is tried again; its summary when it is done."""
    worker: str = ""
    """Who asked the model last; empty: the process that ran the split."""
    done: SubtaskDone | None = None


class OpenAnswer(Struct):
    """A request whose end is not in the log."""

    key: str
    raw: str = ""
    most_tokens: int = 0
    most_usd: float = 0.0


class SplitState(Struct):
    plan: SplitPlan | None = None
    source: PlanSource = "model"
    started: bool = False
    at: float = 0.0
    base: dict[str, str] = {}
    subtasks: dict[str, SubtaskState] = {}
    paused: SplitPaused | None = None
    stalled: str = ""
    """Why no worker can take what is to be done."""
    conflicts: tuple[SplitConflict, ...] = ()
    """Those that are not settled."""
    settled: dict[str, ConflictSettled] = {}
    verified: SplitVerified | None = None
    applied: bool = False
    ended: SplitEnded | None = None
    tokens: int = 0
    usd: float = 0.0
    usd_known: bool = True
    requests: dict[str, OpenAnswer] = {}
    """Open requests by their ids."""
    answers: dict[str, SideAnswered] = {}
    """Answers that no subtask has used yet, by their keys."""

    @property
    def status(self) -> str:
        if self.plan is None:
            return "planning"
        if self.ended:
            return self.ended.state
        if not self.started:
            return "planned"
        return f"paused: {self.paused.why}" if self.paused else "running"

    def of(self, *statuses: SubtaskStatus) -> list[str]:
        """The ids of subtasks with one of these statuses, in the order of the plan."""
        return [name for name, one in self.subtasks.items() if one.status in statuses]

    def apply(self, one: Recorded) -> None:
        match one.event:
            case SplitPlanned(plan=plan, source=source):
                self.plan, self.source, self.at = plan, source, one.at
                self.subtasks = {each.id: SubtaskState() for each in plan.subtasks}
            case SplitStarted(base=base):
                self.started, self.base, self.at = True, dict(base), one.at
            case SplitPaused() as event:
                self.paused = event
            case SplitStalled(detail=detail):
                self.stalled = detail
            case SplitResumed(limits=limits):
                self.paused, self.ended = None, None
                if limits and self.plan:
                    self.plan = replace(self.plan, limits=limits)
            case ConflictsFound(conflicts=conflicts):
                self.conflicts = conflicts
            case ConflictSettled(conflict_id=which) as event:
                self.settled[which] = event
                self.conflicts = tuple(each for each in self.conflicts if each.id != which)
            case SplitVerified() as event:
                self.verified = event
            case ChangeApplied():
                self.applied = True
            case SplitEnded() as event:
                self.ended, self.paused = event, None
            case _:
                self._subtask(one.event, one.at)
                self._request(one.event)

    def _subtask(self, event: Event, at: float) -> None:
        match event:
            case SubtaskStarted(subtask_id=name, attempt=attempt):
                found = self.subtasks[name]
                found.status, found.attempt, found.began = "running", attempt, at
            case SubtaskDone(subtask_id=name):
                found = self.subtasks[name]
                found.status, found.done, found.detail = "done", event, event.summary
                found.seconds, found.worker = event.seconds, event.worker
                self._spend(name, event.usage, event.cost_usd)
                self._forget_answers(name)
            case SubtaskFailed(subtask_id=name, last=last):
                found = self.subtasks[name]
                found.status, found.detail = "failed" if last else "waiting", event.detail
                found.worker = event.worker
                self._spend(name, event.usage, event.cost_usd)
                self._forget_answers(name)
            case SubtasksCancelled(subtask_ids=names):
                for name in names:
                    self.subtasks[name].status, self.subtasks[name].done = "cancelled", None
            case SubtasksReset(subtask_ids=names):
                for name in names:
                    found = self.subtasks[name]
                    found.status, found.done, found.attempt = "waiting", None, 0
                    found.round += 1
                self.conflicts, self.verified, self.ended = (), None, None

    def _request(self, event: Event) -> None:
        match event:
            case SideAsked(purpose="subtask", request_id=request) as event:
                self.requests[request] = OpenAnswer(
                    event.key, most_tokens=event.most_tokens, most_usd=event.most_usd
                )
            case AnswerReceived(request_id=request, raw=raw) if request in self.requests:
                self.requests[request].raw = raw
            case SideAnswered(request_id=request) if request in self.requests:
                key = self.requests.pop(request).key
                self._spend(key.partition("/")[0], event.usage, event.cost_usd)
                if not event.problem:
                    self.answers[key] = event

    def _spend(self, name: str, usage: Usage, usd: float | None) -> None:
        tokens = usage.input_tokens + usage.output_tokens
        self.tokens += tokens
        self.usd += usd or 0.0
        self.usd_known = self.usd_known and usd is not None
        if found := self.subtasks.get(name):
            found.tokens += tokens
            found.usd += usd or 0.0

    def _forget_answers(self, name: str) -> None:
        for key in [key for key in self.answers if key.partition("/")[0] == name]:
            del self.answers[key]


def split_state(events: Iterable[Recorded]) -> SplitState:
    state = SplitState()
    for one in events:
        state.apply(one)
    return state


def waiting_on(state: SplitState, needs: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """{subtask that waits: what it waits for}"""
    return {
        name: [each for each in needs.get(name, ()) if state.subtasks[each].status != "done"]
        for name in state.of("waiting")
    }
