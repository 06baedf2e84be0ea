"""All budgets of a turn, checked before each request."""

from typing import NamedTuple

from handrail.sessions.turn_state import TurnState


class Limits(NamedTuple):
    steps: int = 50
    tokens: int = 2_000_000
    usd: float = 2.0
    seconds: float = 3_600.0
    max_output_tokens: int = 16_384


def exceeded(turn: TurnState, limits: Limits, seconds: float) -> str:
    """Which limit is reached, in words that say what to do; empty when none is."""
    tokens = turn.usage.input_tokens + turn.usage.output_tokens
    if turn.steps >= limits.steps:
        return f"{turn.steps} requests in one turn (limits.steps). Send a message to go on."
    if tokens >= limits.tokens:
        return f"{tokens:,} tokens in one turn (limits.turn_tokens). Send a message to go on."
    if turn.cost_usd >= limits.usd:
        return (
            f"${turn.cost_usd:.2f} spent of ${limits.usd:.2f} a turn (limits.usd). Send a message to go on."
        )
    if seconds >= limits.seconds:
        return f"{limits.seconds:.0f} s in one turn (limits.turn_seconds). Send a message to go on."
    return ""
