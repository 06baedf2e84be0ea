"""How a turn ends."""

from typing import NamedTuple

from handrail.protocol.events import Answered
from handrail.protocol.values import FinishReason


class Ending(NamedTuple):
    reason: FinishReason
    detail: str = ""
    """For the user: why, and what to do."""


def cut_short(answered: Answered) -> str:
    """For the user: what an answer that breaks off means, and what can be done."""
    cut = {
        "length": "The answer reached its length limit",
        "filtered": "The provider withheld the rest of the answer",
    }.get(answered.end, "")
    if not cut:
        return ""
    recovered = f". Nothing of it was done; of its calls this can be read: {'; '.join(answered.blocked)}"
    ways = "/continue asks for the rest, /retry for a new answer."
    return f"{cut}{recovered if answered.blocked else ''}. {ways}"
