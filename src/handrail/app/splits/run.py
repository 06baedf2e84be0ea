"""Run a split request, and tell a running one what the user wants."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from handrail.app.splits.plans import held_split, known_split, queue_place, start_plan, try_hold
from handrail.app.splits.report import SplitReport, report_of
from handrail.changes.forms.document import Document
from handrail.engine.durable.jobs import Job, JobResult, JobRunner, Perform
from handrail.engine.durable.local import local_jobs
from handrail.engine.host.event_stream import first_problem
from handrail.engine.host.turn_factory import price
from handrail.engine.requests.model_requests import PROBE_USAGE, FitToBudget, SideCall
from handrail.engine.split.conductor import (
    Conductor,
    SplitSession,
    apply_commands,
    control_stream,
    take_over_split,
    watch_commands,
)
from handrail.engine.split.finish import finish
from handrail.engine.split.subtask_work import RequestLimits, SubtaskModel
from handrail.protocol.errors import HandrailError, StorageUnreachable, UsageProblem
from handrail.protocol.events import ApprovalAsked, Recorded, ToolFinished
from handrail.protocol.subtask import SplitCommand, SplitPlan
from handrail.protocol.values import Role, to_json
from handrail.sessions.session import Session
from handrail.storage.event_log import Log

if TYPE_CHECKING:
    from handrail.app.app import App

Watch = Callable[[Callable[[], SplitReport]], None]
"""Gets, once it runs, what returns its report as of now."""
Saw = Callable[[Recorded], None]
Approve = Callable[[ApprovalAsked], bool]
START = SplitCommand("start")
RETRY_SECONDS = 1.0
"""Between attempts to reach the log's database."""


async def run_split(
    app: "App",
    session_id: str,
    command: SplitCommand = START,
    *,
    saw: Saw = lambda _recorded: None,
    watch: Watch = lambda _report: None,
    word: Approve | None = None,
    tell: Callable[[str], None] = lambda _text: None,
) -> SplitReport:
    """Start a plan, or go on with it after a command, until it ends or waits for the user.

    `saw` gets each event. `word` asks the user what else needs approval; None: nobody can. `tell` gets why it
    has to wait for the log's database; it goes on from the log, as after a kill.
    """
    accept, begun = command.action == "accept", False
    while True:
        try:
            split = await held_split(app, session_id)
            session, state = split
            try:
                take_over_split(split, app.workspace)
                if not state.started:
                    if command.action != "start":
                        raise UsageProblem(
                            f"This split was not started: `handrail splits start {session_id}`."
                        )
                    await app.chosen_model()
                    start_plan(app, split)
                elif command.action != "start":
                    app.log.put(control_stream(session_id), to_json(command))
                begun, command = True, START
                apply_commands(split)
                session.followers.append(saw)
                watch(partial(report_of, app, split))
                if state.paused is None and state.ended is None:
                    await _run(app, split, word, accept=accept)
                return report_of(app, split)
            finally:
                session.release()
        except (ExceptionGroup, StorageUnreachable) as error:
            problem = first_problem(error) if isinstance(error, ExceptionGroup) else error
            if not isinstance(problem, HandrailError):
                raise
            if not begun or not isinstance(problem, StorageUnreachable):
                raise problem from error
            tell(f"{problem} The split goes on when it can be reached again.")
            await _until_reachable(app.log)


async def _until_reachable(log: Log) -> None:
    """Return once the log's database can be reached, without holding up anything else meanwhile."""

    def answers() -> bool:
        try:
            log.another().close()
        except StorageUnreachable:
            return False
        return True

    while True:
        if await run_sync(answers):
            return
        await anyio.sleep(RETRY_SECONDS)


async def tell_split(app: "App", session_id: str, command: SplitCommand) -> SplitReport:
    """Give a command to whichever process runs the split; where none does, it is taken at once.

    What has to run then is run by `run_split`.
    """
    known = known_split(app, session_id)
    _check(known, command)
    app.log.put(control_stream(session_id), to_json(command))
    if await try_hold(known.session):
        try:
            take_over_split(known, app.workspace)
            apply_commands(known)
        finally:
            known.session.release()
    return report_of(app, known)


def read_split(app: "App", session_id: str) -> SplitReport:
    return report_of(app, known_split(app, session_id))


def _check(split: SplitSession, command: SplitCommand) -> None:
    """Raises UsageProblem for a command that names what is not there."""
    known = split.state.subtasks
    if unknown := [each for each in command.subtask_ids if each not in known]:
        raise UsageProblem(f"There is no subtask {', '.join(unknown)}. `handrail splits show` lists them.")
    if command.action == "settle" and command.conflict_id not in {each.id for each in split.state.conflicts}:
        raise UsageProblem(
            f"There is no open conflict {command.conflict_id!r}. `handrail splits show` lists them."
        )
    if split.state.ended and split.state.ended.state == "complete":
        raise UsageProblem("This split is complete. `handrail undo` takes its changes back.")


async def _run(app: "App", split: SplitSession, word: Approve | None, *, accept: bool) -> None:
    conductor = Conductor(
        split,
        app.commits,
        lambda job, afford: _side(app, split.session, job, afford),
        lambda found: _runner(app, found),
        price,
        secrets=app.model_pool.secrets(),
    )
    await conductor.run()
    session, state = split
    if state.paused or state.ended:
        return
    if not state.of("done"):
        raise UsageProblem("All subtasks were cancelled: there is nothing to apply.")

    async def apply(document: Document) -> ToolFinished:
        return await app.proposals.apply_in(session, document, word=word)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_commands, split, app.commits, tasks.cancel_scope.cancel)
        await finish(split, app.workspace, app.checks, apply, accept=accept)
        tasks.cancel_scope.cancel()


async def _side(app: "App", session: Session, job: Job, afford: FitToBudget) -> SideCall:
    """The model for the subtask's class."""
    model = (await app.model_pool.models(session))[0]
    role: Role = "main"
    efforts = app.settings.models.effort
    if job.subtask.model_class == "fast" and (fast := await app.model_pool.configured_fast(session)):
        model, role = fast, "fast"
    effort = (efforts.fast if role == "fast" else efforts.main) or None
    return SideCall(session, model, role, price, afford, effort)


@asynccontextmanager
async def _runner(app: "App", conductor: Conductor) -> AsyncIterator[JobRunner]:
    """Runs jobs where the plan or the settings say."""
    limits = app.settings.limits
    requests = RequestLimits(limits.max_output_tokens, limits.answer_seconds, app.model_pool.secrets().hide)
    async with local_jobs(_perform(app, conductor, requests), app.commits.notify) as here:
        if not runs_on_workers(app, conductor.plan):
            yield here
            return
        from handrail.engine.durable.queue import JobQueue
        from handrail.engine.split.remote_work import split_jobs

        await _check_prices(app, conductor)
        queue = JobQueue(*queue_place(app))
        async with split_jobs(conductor, here, queue, requests, app.commits.notify) as jobs:
            yield jobs


def runs_on_workers(app: "App", plan: SplitPlan) -> bool:
    return (plan.run_on or app.settings.splits.run_on) == "workers"


async def _check_prices(app: "App", conductor: Conductor) -> None:
    """Raises UsageProblem where a limit in USD could not be kept: it is reserved here, by a known price."""
    limits = conductor.plan.limits
    if limits.usd is None and limits.subtask_usd is None:
        return
    for model in await app.model_pool.models(conductor.session):
        if price(model, PROBE_USAGE) is None:
            raise UsageProblem(
                f"The price of {model.name} is not known, so a limit in USD cannot be kept on workers. Set"
                " its price in the settings, or limit tokens with --max-tokens."
            )


def _perform(app: "App", conductor: Conductor, requests: RequestLimits) -> Perform:
    by_model = SubtaskModel(conductor.side, conductor.state.answers, requests)

    async def perform(job: Job) -> JobResult:
        if job.subtask.needs == "files":
            return await by_model.perform(job)
        from handrail.app.splits.tree import perform_in_tree

        return await perform_in_tree(app, job, conductor)

    return perform
