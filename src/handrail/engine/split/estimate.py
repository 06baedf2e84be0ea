"""What a plan would take, by each strategy: time, tokens, cost, and what could go wrong."""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple, get_args

from handrail.context.token_budget import text_tokens
from handrail.engine.split.graph import needs_of, ordered
from handrail.protocol.subtask import ModelClass, SplitPlan, Strategy, Subtask
from handrail.protocol.values import Usage, Value

PROMPT_TOKENS, ANSWER_TOKENS = 350, 200
"""Of a subtask's own words, and of an answer beside the files."""
FIRST_SECONDS, TOKENS_PER_SECOND = 1.5, 60.0
"""Assumed where nothing was measured."""


class Pace(NamedTuple):
    """How fast a model was so far, and what it costs."""

    first_seconds: float = FIRST_SECONDS
    per_second: float = TOKENS_PER_SECOND
    price: Callable[[Usage], float | None] = lambda _usage: None


class SubtaskEstimate(Value):
    id: str
    tokens: int
    seconds: float
    usd: float | None


class Estimate(Value):
    strategy: Strategy
    seconds: float
    tokens: int
    usd: float | None
    risk: str
    """In words; empty: none that is known."""


def estimate_subtask(subtask: Subtask, sizes: Mapping[str, int], pace: Pace) -> SubtaskEstimate:
    """`sizes`: tokens of each file."""
    shown = sum(sizes.get(path, 0) for path in subtask.files)
    written = sum(sizes.get(path, 0) for path in (subtask.writes or subtask.files))
    usage = Usage(
        input_tokens=PROMPT_TOKENS + text_tokens(subtask.instruction) + shown,
        output_tokens=ANSWER_TOKENS + written,
    )
    seconds = pace.first_seconds + usage.output_tokens / pace.per_second
    return SubtaskEstimate(
        subtask.id, usage.input_tokens + usage.output_tokens, round(seconds, 1), pace.price(usage)
    )


def estimates(
    plan: SplitPlan, sizes: Mapping[str, int], paces: Mapping[ModelClass, Pace]
) -> tuple[Estimate, ...]:
    """One for each strategy."""
    each = {one.id: estimate_subtask(one, sizes, paces[one.model_class]) for one in plan.subtasks}
    costs = [one.usd for one in each.values()]
    known = [usd for usd in costs if usd is not None]
    return tuple(
        Estimate(
            strategy,
            seconds=round(_seconds(plan, strategy, {name: one.seconds for name, one in each.items()}), 1),
            tokens=sum(one.tokens for one in each.values()),
            usd=round(sum(known), 6) if len(known) == len(costs) else None,
            risk=_risk(plan, strategy),
        )
        for strategy in get_args(Strategy)
    )


def _seconds(plan: SplitPlan, strategy: Strategy, takes: Mapping[str, float]) -> float:
    """When the last one ends, with as many at once as the limit allows."""
    needs = needs_of(plan, strategy)
    workers = [0.0] * plan.limits.parallel
    ends: dict[str, float] = {}
    for name in ordered(plan):
        start = max([heapq.heappop(workers), *(ends[each] for each in needs[name])])
        ends[name] = start + takes[name]
        heapq.heappush(workers, ends[name])
    return max(ends.values(), default=0.0)


def _risk(plan: SplitPlan, strategy: Strategy) -> str:
    if strategy == "sequential":
        return ""
    written = Counter(path for one in plan.subtasks for path in set(one.writes or one.files))
    shared = sum(count > 1 for count in written.values())
    ignored = sum(len(one.depends_on) for one in plan.subtasks) if strategy == "all_at_once" else 0
    several = "1 file has" if shared == 1 else f"{shared} files have"
    risks = [f"{several} several writers and may conflict"] if shared else []
    dependencies = "1 dependency is" if ignored == 1 else f"{ignored} dependencies are"
    risks += [f"{dependencies} ignored"] if ignored else []
    return "; ".join(risks)
