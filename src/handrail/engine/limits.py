"""All budgets: of a turn, of a run and of its stages, checked before each request."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from handrail.context.budget import most_tokens
from handrail.models.base import Request
from handrail.protocol.errors import BudgetReached
from handrail.protocol.values import Usage
from handrail.sessions.run_state import RunState
from handrail.sessions.turn_state import TurnState

LEAST_OUTPUT = 256
"""Tokens: an answer that may not even have these is not worth asking for."""


class Limits(NamedTuple):
    steps: int = 50
    tokens: int = 2_000_000
    usd: float = 2.0
    seconds: float = 3_600.0
    max_output_tokens: int = 16_384


GOES_ON = "Send a message to go on."
RUN_IS_OVER = "The run is over; later messages know what it found. To let a new one do more, raise the limit."


def exceeded(turn: TurnState, run: RunState | None, limits: Limits, seconds: float) -> str:
    """Which limit is reached, in words that say what to do; empty when none is."""
    reached = _reached(turn, limits, seconds)
    then = GOES_ON if run is None or run.conversational else RUN_IS_OVER
    return f"{reached} {then}" if reached else ""


def _reached(turn: TurnState, limits: Limits, seconds: float) -> str:
    tokens = turn.usage.input_tokens + turn.usage.output_tokens
    if turn.steps >= limits.steps:
        return f"{turn.steps} requests in one turn (limits.steps)."
    if tokens >= limits.tokens:
        return f"{tokens:,} tokens in one turn (limits.turn_tokens)."
    if turn.cost_usd >= limits.usd:
        return f"${turn.cost_usd:.2f} spent of ${limits.usd:.2f} a turn (limits.usd)."
    if seconds >= limits.seconds:
        return f"{limits.seconds:.0f} s in one turn (limits.turn_seconds)."
    return ""


class Budget(NamedTuple):
    """What may be spent; None: nothing is said."""

    tokens: int | None = None
    usd: float | None = None


NO_BUDGET = Budget()
Price = Callable[[Usage], float | None]
"""USD; None where nobody knows."""


class Share(NamedTuple):
    """A budget, and what is spent of it."""

    name: str
    budget: Budget
    tokens: int
    usd: float
    written: str = ""
    """Where the budget is written down, for whom it is not enough."""


class Afforded(NamedTuple):
    """A request that stays within every budget, and what it can come to at most."""

    request: Request
    tokens: int = 0
    usd: float = 0.0


def shares(run: RunState, pipeline: Budget, stage: Budget) -> list[Share]:
    """The budgets that hold for the stage that is open, with what the whole run has spent of them."""
    name = run.open.stage if run.open else ""
    of_stage = run.of_stage(name)
    file = f"in the agent.toml of {run.pipeline}" if run.sha256 else ""
    own, whole = (f"of {each} {file}" if file else "" for each in (f"the budget of {name}", "[budget]"))
    return [
        Share(f"the stage {name}", stage, of_stage.tokens, of_stage.usd, own),
        Share(f"the run of {run.pipeline}", pipeline, run.tokens(), run.usd(), whole),
    ]


def afford(request: Request, budgets: Sequence[Share], price: Price) -> Afforded:
    """The request, its answer no longer than can be paid for; raises BudgetReached where there is none."""
    budgets = [share for share in budgets if share.budget != NO_BUDGET]
    if not budgets:
        return Afforded(request)
    asked, output = most_tokens(request), request.max_output_tokens
    least = min(LEAST_OUTPUT, output)
    for share in budgets:
        output = min(output, _output(share, asked, output, price))
        if output < least:
            raise BudgetReached(_told(share, asked + least))
    most = _most_usd(price, asked, output) or 0.0
    return Afforded(request.changed(max_output_tokens=output), asked + output, most)


def _most_usd(price: Price, asked: int, output: int) -> float | None:
    """Some providers take more for what they keep for the next request, and may keep all of it."""
    plain = price(Usage(input_tokens=asked, output_tokens=output))
    kept = price(Usage(input_tokens=asked, output_tokens=output, cache_write_tokens=asked))
    return plain if plain is None or kept is None else max(plain, kept)


def _output(share: Share, asked: int, wished: int, price: Price) -> int:
    """How many tokens an answer may have; negative where not even the question can be paid for."""
    tokens, usd = share.budget
    most = wished if tokens is None else min(wished, tokens - share.tokens - asked)
    if usd is None or price(Usage(input_tokens=asked)) is None:
        return most

    def fits(output: int) -> bool:
        return share.usd + (_most_usd(price, asked, output) or 0.0) <= usd

    if most < 0 or not fits(0):
        return -1
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _told(share: Share, least: int) -> str:
    tokens, usd = share.budget
    key = "tokens" if tokens is not None and share.tokens + least > tokens else "usd"
    more = f" To let a run do more, raise {key} {share.written}." if share.written else ""
    told = []
    if tokens is not None:
        told.append(f"{share.tokens:,} of {tokens:,} tokens")
    if usd is not None:
        told.append(f"${share.usd:.2f} of ${usd:.2f}")
    return (
        f"The next request could pass the budget of {share.name}, of which {' and '.join(told)} are spent."
        f" It was not sent; what was done is kept.{more}"
    )
