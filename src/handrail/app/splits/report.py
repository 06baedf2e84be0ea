"""A split as interfaces show it: estimates, each subtask with what it waits for, conflicts, the end."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from handrail.engine.host.turn_factory import price
from handrail.engine.split.conductor import SplitSession, plan_of
from handrail.engine.split.estimate import Estimate, Pace, estimates
from handrail.engine.split.graph import needs_of
from handrail.models.model import Model
from handrail.protocol.errors import HandrailError
from handrail.protocol.events import Answered, Recorded, SideAnswered, SideAsked
from handrail.protocol.subtask import ModelClass, RunOn, SplitConflict, SplitPlan, SubtaskStatus
from handrail.protocol.upcast import VERSION, load_event
from handrail.protocol.values import Usage, Value
from handrail.sessions.split_state import SplitState, split_state, waiting_on
from handrail.storage.locks import is_held

if TYPE_CHECKING:
    from handrail.app.app import App

__all__ = ["Estimate"]

STATUSES = {"complete": 0, "failed": 1, "unverified": 5, "cancelled": 130}
PAUSED = {"user": 3, "budget": 4, "failed": 1, "conflicts": 6}
BYTES_PER_TOKEN = 3.5
ANSWERS_LOOKED_AT, LEAST_MEASURED = 50, 500
"""The last answers of a model, and the tokens in them below which its speed is only assumed."""
LISTED_EVENTS = (
    *("split_planned", "split_started", "split_paused", "split_resumed", "split_ended"),
    *("subtask_done", "subtasks_reset", "subtasks_cancelled"),
)
"""Events that a list of splits is computed from."""


class SubtaskRow(Value):
    id: str
    instruction: str
    status: SubtaskStatus
    waiting_on: tuple[str, ...]
    depends_on: tuple[str, ...]
    model_class: ModelClass
    attempt: int
    seconds: float
    tokens: int
    usd: float
    detail: str
    files: tuple[str, ...]
    """That it changed; before, those that it may change."""
    worker: str
    """Who asked its model; empty: the process that runs the split, or nobody yet."""


class SplitReport(Value):
    session_id: str
    task: str
    status: str
    """planned, running, `paused: WHY`, complete, failed, unverified or cancelled."""
    detail: str
    run_on: RunOn
    stalled: str
    """Why no worker can take what is to be done; it goes on by itself."""
    strategy: str
    granularity: str
    source: str
    subtasks: tuple[SubtaskRow, ...]
    counts: dict[str, int]
    conflicts: tuple[SplitConflict, ...]
    checks: tuple[str, ...]
    files: tuple[str, ...]
    """That were applied."""
    tokens: int
    usd: float | None
    """None: a price is not known."""
    held: bool
    """Some process works on it now."""
    exit_status: int


class SplitLine(Value):
    """A split in a list."""

    session_id: str
    task: str
    status: str
    subtasks: int
    done: int
    at: float


def report_of(app: "App", split: SplitSession) -> SplitReport:
    session, state = split
    plan = plan_of(state)
    waits = waiting_on(state, needs_of(plan))
    held = session.held or (state.started and not state.ended and is_held(session.log, session.stream))
    run_on = plan.run_on or app.settings.splits.run_on
    rows = []
    for each in plan.subtasks:
        found = state.subtasks[each.id]
        # What a process had begun that has left is begun anew; a worker goes on with it.
        cut_off = found.status == "running" and not held and run_on == "here"
        changed = tuple(file.path for file in found.done.files) if found.done else ()
        rows.append(
            SubtaskRow(
                each.id,
                each.instruction,
                "waiting" if cut_off else found.status,
                tuple(waits.get(each.id, ())),
                each.depends_on,
                each.model_class,
                found.attempt,
                round(time.time() - found.began, 1)
                if found.status == "running" and not cut_off
                else found.seconds,
                found.tokens,
                round(found.usd, 6),
                found.detail,
                changed if found.done else each.writes or each.files,
                found.worker,
            )
        )
    counts = {status: sum(row.status == status for row in rows) for status in get_args(SubtaskStatus)}
    last = state.ended or state.paused
    return SplitReport(
        session_id=session.id,
        task=plan.task,
        status=state.status,
        detail=last.detail if last else "",
        run_on=run_on,
        stalled=state.stalled if state.status == "running" else "",
        strategy=plan.strategy,
        granularity=plan.granularity,
        source=state.source,
        subtasks=tuple(rows),
        counts=counts,
        conflicts=state.conflicts,
        checks=state.verified.checks if state.verified else (),
        files=state.ended.files if state.ended else (),
        tokens=state.tokens,
        usd=round(state.usd, 6) if state.usd_known else None,
        held=held,
        exit_status=_exit_status(state),
    )


def _exit_status(state: SplitState) -> int:
    if state.ended:
        return STATUSES[state.ended.state]
    return PAUSED[state.paused.why] if state.paused else 0


async def estimate_plan(app: "App", plan: SplitPlan) -> tuple[Estimate, ...]:
    """What the plan would take by each strategy, with the models that would be asked."""
    sizes = {}
    for path in {path for each in plan.subtasks for path in each.files}:
        if app.workspace.exists(path):
            sizes[path] = max(1, round(app.workspace.size(path) / BYTES_PER_TOKEN))
    return estimates(plan, sizes, await _paces(app))


async def _paces(app: "App") -> dict[ModelClass, Pace]:
    try:
        main = (await app.model_pool.models(None))[0]
        name = app.settings.models.fast
        fast = await app.model_pool.named(await app.model_pool.check(name)) if name else main
    except HandrailError:  # no model yet: it is told when the plan is started
        return {"main": Pace(), "fast": Pace()}
    speeds = await app.query(_speeds)
    return {"main": _pace(main, speeds), "fast": _pace(fast, speeds)}


def _speeds(app: "App") -> dict[str, float]:
    """Tokens a second that models have written here lately, the wait for the first one included."""
    models: dict[str, str] = {}
    spent: dict[str, list[tuple[int, float]]] = {}
    for _, data in app.log.of_types(("side_asked", "side_answered", "answered")):
        match load_event(VERSION, data):
            case SideAsked(request_id=request, model=model):
                models[request] = model
            case SideAnswered(request_id=request, usage=usage, seconds=seconds) if request in models:
                spent.setdefault(models.pop(request), []).append((usage.output_tokens, seconds))
            case Answered(model=model, usage=usage, seconds=seconds):
                spent.setdefault(model, []).append((usage.output_tokens, seconds))
    found = {}
    for model, answers in spent.items():
        tokens, seconds = map(sum, zip(*answers[-ANSWERS_LOOKED_AT:], strict=True))
        if tokens >= LEAST_MEASURED and seconds:
            found[model] = tokens / seconds
    return found


def _pace(model: Model, speeds: Mapping[str, float]) -> Pace:
    """How fast the model was here, and what it costs."""

    def priced(usage: Usage) -> float | None:
        return price(model, usage)

    if speed := speeds.get(model.name):
        return Pace(0.0, speed, priced)
    return Pace(price=priced)


def list_splits(app: "App") -> list[SplitLine]:
    """All split requests of the workspace, the latest first."""
    found: dict[str, list[Recorded]] = {}
    for stream, at, data in app.log.dated(LISTED_EVENTS):
        found.setdefault(stream, []).append(Recorded(stream, 0, at, load_event(VERSION, data)))
    lines = []
    for stream, events in found.items():
        state = split_state(events)
        if state.plan:
            done = len(state.of("done"))
            session_id = stream.removeprefix("session:")
            lines.append(
                SplitLine(
                    session_id, state.plan.task, state.status, len(state.plan.subtasks), done, events[0].at
                )
            )
    return sorted(lines, key=lambda each: each.at, reverse=True)
