"""Subtasks whose model a worker asks: the request there; here budgets, hidden secrets and the record."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple

from msgspec.structs import replace

from handrail.context.token_budget import measure_request
from handrail.engine.durable.jobs import (
    GivenExport,
    GivenFile,
    Job,
    JobBudget,
    JobResult,
    JobRunner,
    ModelExchange,
)
from handrail.engine.durable.queue import JobQueue
from handrail.engine.durable.queued import QueuedJobs, queued_jobs
from handrail.engine.limits import Budget, BudgetShare, fit_to_budget
from handrail.engine.requests.model_requests import SIDE_CALL_CUT, Cost, request_cost
from handrail.engine.split.conductor import Conductor
from handrail.engine.split.ledger import Reserved
from handrail.engine.split.subtask_work import RequestLimits, problem_result, request_of
from handrail.models.model import EndOfBytes, Model, Progress, Request, RequestBytes
from handrail.models.reading.collector import AnswerCollector
from handrail.protocol.errors import Authenticate, BudgetReached, ModelProblem, SchemaRefused
from handrail.protocol.values import Effort, Role, Usage


class WorkerModel(NamedTuple):
    """A worker's own model, and what it costs there."""

    model: Model
    role: Role
    effort: Effort | None
    cost: Cost
    limits: RequestLimits

    async def answer(self, job: Job) -> JobResult:
        """What the model says to the job, unread; raises Authenticate where no job would fare better."""
        began = time.monotonic()
        request = request_of(job, self.model, self.limits)
        whole_file = request.output_schema is None
        request = replace(request, effort=self.effort, key=job.name)
        share = BudgetShare(
            f"the subtask {job.subtask.id}", Budget(job.budget.tokens, job.budget.usd), 0, 0.0
        )
        exchanges: list[ModelExchange] = []
        try:
            request = fit_to_budget(request, [share], lambda usage: self.cost(self.model, usage)).request
            while True:
                exchange, problem = await self._exchange(request, whole_file=whole_file)
                exchanges.append(exchange)
                if not isinstance(problem, SchemaRefused):
                    break
        except BudgetReached:
            told = (
                f"{self.model.name} of this worker costs more than the {_words(job.budget)} that were"
                " reserved for it where the split runs. Raise the split's limit, or use the same model there."
            )
            return JobResult(job.key, problem=told, exchanges=tuple(exchanges))
        if isinstance(problem, Authenticate):
            raise problem
        seconds = round(time.monotonic() - began, 3)
        found = problem_result(job, problem) if problem else JobResult(job.key)
        if exchange.problem and not problem:
            found = JobResult(job.key, problem=exchange.problem, again=True)
        return replace(found, exchanges=tuple(exchanges), seconds=seconds)

    async def _exchange(
        self, request: Request, *, whole_file: bool
    ) -> tuple[ModelExchange, ModelProblem | None]:
        collector, sent, began = AnswerCollector(), b"", time.monotonic()
        problem: ModelProblem | None = None
        try:
            async with aclosing(self.model.stream(request)) as parts:
                async for part in parts:
                    match part:
                        case RequestBytes(pieces):
                            sent = b"".join(pieces)
                        case Progress() | EndOfBytes():
                            pass
                        case _:
                            collector.add(part)
        except ModelProblem as found:
            problem = found
        answer, size = collector.answer(), measure_request(request)
        billed = problem is None or problem.billed or answer.usage != Usage()
        exchange = ModelExchange(
            model=self.model.name,
            role=self.role,
            request=sent,
            raw=bytes(collector.raw),
            text=answer.text,
            problem=str(problem) if problem else SIDE_CALL_CUT.get(answer.finish or "cut", ""),
            whole_file=whole_file,
            prompt_bytes=size.bytes,
            prompt_tokens=size.tokens,
            usage=answer.usage,
            cost_usd=request_cost(self.cost, self.model, answer.usage) if billed else 0.0,
            seconds=time.monotonic() - began,
            effort=request.effort,
            effort_sent=self.model.capabilities.effort_for(request) is not None,
        )
        return exchange, problem


class SplitJobs:
    """A `JobRunner`: subtasks that need a tree run here, the others on workers.

    What a job may cost is reserved before it leaves, and the worker asks for no more than that.
    """

    def __init__(
        self,
        conductor: Conductor,
        here: JobRunner,
        workers: QueuedJobs,
        limits: RequestLimits,
        notify: Callable[[], None],
    ) -> None:
        self._conductor = conductor
        self._here = here
        self._workers = workers
        self._limits = limits
        self._notify = notify
        self._refused: list[JobResult] = []

    async def submit(self, job: Job) -> None:
        if job.subtask.needs == "tree" or job.key in self._conductor.state.answers:
            await self._here.submit(job)
            return
        side = await self._conductor.side(job)
        request = request_of(job, side.model, self._limits)
        try:
            _, tokens, usd = side.afford(side.model, request)
        except BudgetReached as reached:
            self._refused.append(JobResult(job.key, problem=str(reached), over_budget=True))
            self._notify()
            return
        limits = self._conductor.plan.limits
        counts_tokens = limits.tokens is not None or limits.subtask_tokens is not None
        counts_usd = limits.usd is not None or limits.subtask_usd is not None
        budget = JobBudget(tokens if counts_tokens else None, usd if counts_usd else None)
        self._conductor.ledger.reserved[job.key] = Reserved(tokens, usd)
        sent = without_secrets(job, self._limits.hide)
        await self._workers.submit(replace(sent, split_id=self._conductor.session.id, budget=budget))

    async def cancel(self, key: str) -> None:
        await self._here.cancel(key)
        await self._workers.cancel(key)
        self._conductor.ledger.reserved.pop(key, None)

    def results(self) -> list[JobResult]:
        cancelled, self._workers.begun_and_cancelled = self._workers.begun_and_cancelled, []
        for key in cancelled:
            self._conductor.record_unknown_cost(key)
        refused, self._refused = self._refused, []
        found = self._workers.results()
        for each in found:
            self._conductor.ledger.reserved.pop(each.key, None)
        return [*self._here.results(), *refused, *found]

    def stalled(self) -> str:
        return self._workers.stalled()


@asynccontextmanager
async def split_jobs(
    conductor: Conductor,
    here: JobRunner,
    queue: JobQueue,
    limits: RequestLimits,
    notify: Callable[[], None],
) -> AsyncIterator[SplitJobs]:
    async with queued_jobs(queue, notify) as workers:
        yield SplitJobs(conductor, here, workers, limits, notify)


def without_secrets(job: Job, hide: Callable[[str], str]) -> Job:
    """The job as it may leave this machine; proposals are applied to the texts that stay here."""
    subtask = job.subtask
    return replace(
        job,
        task=hide(job.task),
        refused=hide(job.refused),
        subtask=replace(
            subtask,
            instruction=hide(subtask.instruction),
            constraints=tuple(map(hide, subtask.constraints)),
        ),
        files=tuple(
            GivenFile(each.path, each.text if each.text is None else hide(each.text), each.sha256)
            for each in job.files
        ),
        exports=tuple(
            GivenExport(
                each.subtask_id,
                hide(each.summary),
                tuple(
                    replace(one, name=hide(one.name), kind=hide(one.kind), detail=hide(one.detail))
                    for one in each.exports
                ),
            )
            for each in job.exports
        ),
    )


def _words(budget: JobBudget) -> str:
    tokens = [] if budget.tokens is None else [f"{budget.tokens:,} tokens"]
    return " and ".join(tokens + ([] if budget.usd is None else [f"${budget.usd:.4f}"]))
