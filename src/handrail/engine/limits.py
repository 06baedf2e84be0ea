"""All limits and budgets of turns, runs and stages."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from handrail.context.token_budget import max_request_tokens
from handrail.models.model import Request
from handrail.protocol.errors import BudgetReached
from handrail.protocol.values import Usage
from handrail.sessions.run_state import RunState
from handrail.sessions.turn_state import TurnState

MIN_OUTPUT = 256  # tokens: with less room for the answer, no request is sent


class Limits(NamedTuple):
    steps: int = 50
    tokens: int = 2_000_000
    usd: float = 2.0
    seconds: float = 3_600.0
    max_output_tokens: int = 16_384


CONTINUE_HELP = "Send a message to go on."
RUN_IS_OVER = "The run is over; later messages know what it found. To let a new one do more, raise the limit."


def exceeded(turn: TurnState, run: RunState | None, limits: Limits, seconds: float) -> str:
    """Which limit is reached, and what to do; empty when none is."""
    tokens = turn.usage.input_tokens + turn.usage.output_tokens
    if turn.steps >= limits.steps:
        reached = f"{turn.steps} requests in one turn (limits.steps)."
    elif tokens >= limits.tokens:
        reached = f"{tokens:,} tokens in one turn (limits.turn_tokens)."
    elif turn.cost_usd >= limits.usd:
        reached = f"${turn.cost_usd:.2f} spent of ${limits.usd:.2f} a turn (limits.usd)."
    elif seconds >= limits.seconds:
        reached = f"{limits.seconds:.0f} s in one turn (limits.turn_seconds)."
    else:
        return ""
    return f"{reached} {CONTINUE_HELP if run is None or run.conversational else RUN_IS_OVER}"


class Budget(NamedTuple):
    """What may be spent; None: no limit."""

    tokens: int | None = None
    usd: float | None = None


NO_BUDGET = Budget()
Price = Callable[[Usage], float | None]  # USD; None where the price is unknown


class BudgetShare(NamedTuple):
    name: str
    budget: Budget
    tokens: int
    usd: float
    written: str = ""  # where the budget is set


class AffordedRequest(NamedTuple):
    """A request that stays within every budget, and its maximum cost."""

    request: Request
    tokens: int = 0
    usd: float = 0.0


def budget_shares(run: RunState, pipeline: Budget, stage: Budget) -> list[BudgetShare]:
    name = run.open.stage if run.open else ""
    of_stage = run.of_stage(name)
    file = f"in the agent.toml of {run.pipeline}" if run.sha256 else ""
    own, whole = (f"of {each} {file}" if file else "" for each in (f"the budget of {name}", "[budget]"))
    return [
        BudgetShare(f"the stage {name}", stage, of_stage.tokens, of_stage.usd, own),
        BudgetShare(f"the run of {run.pipeline}", pipeline, run.tokens(), run.usd(), whole),
    ]


def fit_to_budget(request: Request, budgets: Sequence[BudgetShare], price: Price) -> AffordedRequest:
    """The request with its answer limited to what the budgets allow; raises BudgetReached."""
    budgets = [share for share in budgets if share.budget != NO_BUDGET]
    if not budgets:
        return AffordedRequest(request)
    asked, output = max_request_tokens(request), request.max_output_tokens
    least = min(MIN_OUTPUT, output)
    for share in budgets:
        output = min(output, _affordable_output(share, asked, output, price))
        if output < least:
            raise BudgetReached(_budget_message(share, asked + least))
    most = _max_usd(price, asked, output) or 0.0
    return AffordedRequest(replace(request, max_output_tokens=output), asked + output, most)


def _max_usd(price: Price, asked: int, output: int) -> float | None:
    """The highest price: some providers charge more for cached tokens, and may cache all."""
    plain = price(Usage(input_tokens=asked, output_tokens=output))
    kept = price(Usage(input_tokens=asked, output_tokens=output, cache_write_tokens=asked))
    return plain if plain is None or kept is None else max(plain, kept)


def _affordable_output(share: BudgetShare, asked: int, wanted: int, price: Price) -> int:
    """How many tokens the answer may have; negative where the question alone is too expensive."""
    tokens, usd = share.budget
    most = wanted if tokens is None else min(wanted, tokens - share.tokens - asked)
    if usd is None or price(Usage(input_tokens=asked)) is None:
        return most

    def fits(output: int) -> bool:
        return share.usd + (_max_usd(price, asked, output) or 0.0) <= usd

    if most < 0 or not fits(0):
        return -1
    return bisect_left(range(1, most + 1), x=True, key=lambda output: not fits(output))


def _budget_message(share: BudgetShare, least: int) -> str:
    tokens, usd = share.budget
    key = "tokens" if tokens is not None and share.tokens + least > tokens else "usd"
    more = f" To let a run do more, raise {key} {share.written}." if share.written else ""
    spent = [] if tokens is None else [f"{share.tokens:,} of {tokens:,} tokens"]
    spent += [] if usd is None else [f"${share.usd:.2f} of ${usd:.2f}"]
    return (
        f"The next request could pass the budget of {share.name}, of which {' and '.join(spent)} are spent."
        f" It was not sent; what was done is kept.{more}"
    )
