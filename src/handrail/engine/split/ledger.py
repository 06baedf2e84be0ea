"""Budgets of a split: no request goes beyond that of the whole, or of its subtask."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from handrail.engine.durable.jobs import Job
from handrail.engine.limits import AffordedRequest, Budget, BudgetShare, fit_to_budget
from handrail.engine.requests.model_requests import Cost, FitToBudget
from handrail.models.model import Model, Request
from handrail.protocol.errors import BudgetReached
from handrail.protocol.subtask import SplitLimits
from handrail.protocol.values import Usage
from handrail.sessions.split_state import OpenAnswer, SplitState, SubtaskState

OTHERS_RUN = "Others still run, and what they leave of the budget is not known."


class Reached(NamedTuple):
    why: str
    alone: bool
    """Nothing else was open: it is not allowed later either."""


class Reserved(NamedTuple):
    """What a job that a worker or an agent has may still cost."""

    most_tokens: int
    most_usd: float


class Ledger:
    """Budgets of the whole request and of each subtask, with what open requests may still cost."""

    def __init__(self, state: SplitState, cost: Cost) -> None:
        self._state = state
        self._cost = cost
        self.reached: list[Reached] = []
        """Set once the whole budget does not allow a request."""
        self.reserved: dict[str, Reserved] = {}
        """{key of a job: what it may cost}"""

    @property
    def _limits(self) -> SplitLimits:
        plan = self._state.plan
        return plan.limits if plan else SplitLimits()

    def _spent_without(self, key: str) -> Reserved:
        """What the split has spent, with what is open and reserved, but for this job's own reserve."""
        state = self._state
        opened = self._opened(key)
        tokens = state.tokens + sum(each.most_tokens for each in opened)
        return Reserved(tokens, state.usd + sum(each.most_usd for each in opened))

    def _opened(self, key: str) -> list[OpenAnswer | Reserved]:
        kept = [each for name, each in self.reserved.items() if name != key]
        return [*self._state.requests.values(), *kept]

    def afford(self, subtask_id: str = "", key: str = "") -> FitToBudget:
        """Keeps requests within the whole budget, and within that of the subtask, if it is for one.

        `key`: the job that they belong to, whose own reserve they may use.
        """

        def afforded(model: Model, request: Request) -> AffordedRequest:
            limits, spent = self._limits, self._state.subtasks.get(subtask_id, SubtaskState())
            own = Budget(limits.subtask_tokens, limits.subtask_usd) if subtask_id else Budget()
            share = BudgetShare(f"the subtask {subtask_id}", own, spent.tokens, spent.usd)

            def price(usage: Usage) -> float | None:
                return self._cost(model, usage)

            fitted = fit_to_budget(request, [share], price)
            opened, before = self._opened(key), self._spent_without(key)
            whole = BudgetShare("the whole split", Budget(limits.tokens, limits.usd), *before)
            try:
                last = fit_to_budget(fitted.request, [whole], price)
                if opened and last.request.max_output_tokens < fitted.request.max_output_tokens:
                    raise BudgetReached(OTHERS_RUN)
            except BudgetReached as reached:
                self.reached.append(Reached(str(reached), not opened))
                raise
            return max(fitted, last, key=lambda each: each.tokens)._replace(request=last.request)

        return afforded

    @contextmanager
    def reserve(self, job: Job) -> Iterator[FitToBudget]:
        """Keep from all others what an agent may cost: up to its subtask's limit, or all that is left.

        Raises BudgetReached where others have reserved everything.
        """
        limits, spent = self._limits, self._state.subtasks[job.subtask.id]
        before = self._spent_without(job.key)
        tokens = _left(limits.tokens, before.most_tokens, limits.subtask_tokens, spent.tokens)
        usd = _left(limits.usd, before.most_usd, limits.subtask_usd, spent.usd)
        if self._opened(job.key) and (tokens == 0 or usd == 0):
            self.reached.append(Reached(OTHERS_RUN, alone=False))
            raise BudgetReached(OTHERS_RUN)
        self.reserved[job.key] = Reserved(int(tokens or 0), usd or 0.0)
        try:
            yield self.afford(job.subtask.id, job.key)
        finally:
            del self.reserved[job.key]

    def spend(self, key: str, usage: Usage, usd: float | None) -> None:
        """Take what a job has spent from its reserve."""
        kept, tokens = self.reserved[key], usage.input_tokens + usage.output_tokens
        left = max(0, kept.most_tokens - tokens), max(0.0, kept.most_usd - (usd or 0.0))
        self.reserved[key] = Reserved(*left)


def _left(limit: float | None, spent: float, own_limit: float | None, own_spent: float) -> float | None:
    """What a subtask may take of the whole budget; None: that has no limit."""
    if limit is None:
        return None
    left = max(0.0, limit - spent)
    return left if own_limit is None else min(left, max(0.0, own_limit - own_spent))
