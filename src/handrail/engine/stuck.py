"""Noticing that a model goes in circles."""

from collections.abc import Sequence

from handrail.sessions.turn_state import Done

REPEATS = 3
FAILURES = 4
ALTERNATIONS = 6


def stuck(recent: Sequence[Done]) -> str:
    """What the model is doing, in words for it; empty when it is getting on."""
    last = recent[-1] if recent else None
    same = [done for done in recent[-REPEATS:] if last and done[:2] == last[:2]]
    if len(same) == REPEATS:
        return f"You have made the same call {REPEATS} times with the same result."
    failures = recent[-FAILURES:]
    if len(failures) == FAILURES and all(done.failed for done in failures) and _alike(failures):
        return f"Your last {FAILURES} calls failed in the same way."
    tail = recent[-ALTERNATIONS:]
    circling = len(tail) == ALTERNATIONS and len({done[:2] for done in tail}) <= 2
    if circling and any(done.failed for done in tail):
        return "You are alternating between two calls that keep giving the same results."
    return ""


def _alike(calls: Sequence[Done]) -> bool:
    return len({done.result for done in calls}) == 1
