"""Split requests: plan one, edit the plan, start it, follow it, and say what is wanted of it."""

from typing import Annotated, Literal

from msgspec import Meta

from handrail.app.splits.plans import SplitOptions, change_plan, keep_plan, known_plan, plan_task
from handrail.app.splits.report import Estimate, SplitLine, SplitReport, estimate_plan
from handrail.app.splits.report import list_splits as splits_of
from handrail.app.splits.run import read_split, tell_split
from handrail.app.splits.settle import settle_conflict
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.protocol.subtask import (
    Granularity,
    RunOn,
    Settlement,
    SplitCommand,
    SplitLimits,
    SplitPlan,
    Strategy,
)
from handrail.protocol.values import Value


class SplitList(Value):
    splits: tuple[SplitLine, ...]


class NewSplit(Value):
    task: Annotated[str, Meta(max_length=50_000, pattern=r"\S")]
    files: Annotated[tuple[Annotated[str, Meta(max_length=500)], ...], Meta(max_length=100)] = ()
    """Patterns: the task is done for each file that they match, without asking a model for a plan."""
    granularity: Granularity | None = None
    strategy: Strategy = "graph"
    limits: SplitLimits = SplitLimits()
    run_on: RunOn | None = None


class SplitInfo(Value):
    split: SplitReport
    plan: SplitPlan
    estimates: tuple[Estimate, ...]
    """What each strategy would take; only before it starts."""
    problem: str
    """Why it stopped on this server, if it did not end; empty: it did, or it runs."""


class SplitAction(Value):
    action: Literal["start", "pause", "resume", "cancel", "retry", "accept"]
    subtask_ids: tuple[str, ...] = ()
    """`cancel`: none means all of them."""
    limits: SplitLimits | None = None
    """`resume`: new ones."""


class Settled(Value):
    by: Settlement
    text: str | None = None
    """For `by: text`: what stands there."""


async def list_splits(call: Call) -> SplitList:
    """All split requests of the workspace, the latest first."""
    return SplitList(tuple(await call.app.query(splits_of)))


async def plan_split(call: Call, body: NewSplit) -> SplitInfo:
    """Make a plan, which waits to be started; without `files`, a model is asked for it."""
    options = SplitOptions(body.files, body.granularity, body.strategy, body.limits, body.run_on)
    return await split_info(call, await plan_task(call.app, body.task, options))


async def add_split(call: Call, body: SplitPlan) -> SplitInfo:
    """Keep a plan of your own, which waits to be started."""
    return await split_info(call, keep_plan(call.app, body))


async def show_split(call: Call) -> SplitInfo:
    """A split: its subtasks, what they wait for and cost, conflicts with both sides, and its plan."""
    return await split_info(call, call.names["split"])


async def edit_split(call: Call, body: SplitPlan) -> SplitInfo:
    """Put an edited plan in place of one that was not started."""
    await change_plan(call.app, call.names["split"], body)
    return await split_info(call, call.names["split"])


async def command_split(call: Call, body: SplitAction) -> SplitInfo:
    """Start, pause, resume or cancel it; cancel or retry some subtasks; accept an unverified result."""
    split_id = call.names["split"]
    wanted = SplitCommand(body.action, body.subtask_ids, limits=body.limits)
    if body.action in ("start", "resume", "accept"):
        read_split(call.app, split_id)  # says what is wrong with the name
        call.workspace.start_split(call.app, split_id, wanted)
    else:
        told = await tell_split(call.app, split_id, wanted)
        if body.action == "retry" and not told.held:
            call.workspace.start_split(call.app, split_id, SplitCommand("resume"))
    return await split_info(call, split_id)


async def settle_split(call: Call, body: Settled) -> SplitInfo:
    """Settle a conflict by one side, both, a text, or by letting the model join them."""
    await settle_conflict(call.app, call.names["split"], call.names["conflict"], body.by, body.text)
    return await split_info(call, call.names["split"])


async def split_info(call: Call, session_id: str) -> SplitInfo:
    report, plan = read_split(call.app, session_id), known_plan(call.app, session_id)
    found = await estimate_plan(call.app, plan) if report.status == "planned" else ()
    return SplitInfo(report, plan, found, call.workspace.split_problems.get(session_id, ""))


SPLIT_ENDPOINTS = (
    Endpoint("GET", "/splits", list_splits),
    Endpoint("POST", "/splits", plan_split, status=201),
    Endpoint("POST", "/splits/plans", add_split, status=201),
    Endpoint("GET", "/splits/{split}", show_split),
    Endpoint("PUT", "/splits/{split}/plan", edit_split),
    Endpoint("POST", "/splits/{split}/commands", command_split, status=202),
    Endpoint("POST", "/splits/{split}/conflicts/{conflict}", settle_split),
)
