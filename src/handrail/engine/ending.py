"""How a turn ends."""

from typing import NamedTuple

from handrail.protocol.values import FinishReason


class Ending(NamedTuple):
    reason: FinishReason
    detail: str = ""
    """For the user: why, and what to do."""
