"""Events of commands that the user has run from an answer: one, or a batch of them one by one."""

from typing import Literal

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import ToolCall

BatchDecision = Literal["continue", "stop", "replace"]
BatchEnd = Literal["completed", "stopped", "limit", "cancelled", "interrupted"]


class BatchStarted(EventBase):
    type: Literal["batch_started"] = "batch_started"
    turn_id: str
    batch_id: str
    commands: tuple[str, ...]
    """What the user picked, in order."""
    together: bool = True
    """False: one command by itself, after which nobody decides how to go on."""
    network: bool = False
    """The user lets them use the network."""
    told: bool = True
    """Whether the model sees what they write."""


class BatchStep(EventBase):
    """The next command; committed before anything is decided about it."""

    type: Literal["batch_step"] = "batch_step"
    turn_id: str
    batch_id: str
    number: int
    """1 for the first of the batch; a corrected command has the number of the one whose place it takes."""
    call: ToolCall
    by: Literal["user", "model"] = "user"
    """Who chose its text."""
    model: str = ""
    """The model that would answer, in whose place the call stands."""
    told: bool = True
    """Whether the model sees what comes of it."""
    total: int
    succeeded: int = 0
    failed: int = 0
    remaining: int = 0
    """Commands after this one."""


class BatchDecided(EventBase):
    """How a batch goes on after a command has ended."""

    type: Literal["batch_decided"] = "batch_decided"
    turn_id: str
    batch_id: str
    number: int
    """The command that had ended."""
    decision: BatchDecision
    by: Literal["model", "rule"]
    why: str = ""
    command: str = ""
    """What runs instead, of the decision `replace`."""
    network: bool = False
    """What runs instead wants the network."""


class BatchFinished(EventBase):
    type: Literal["batch_finished"] = "batch_finished"
    turn_id: str
    batch_id: str
    end: BatchEnd
    why: str = ""
    """For the user; empty where all of it has run."""
    number: int
    """The last command that was begun."""
    total: int
    succeeded: int
    failed: int
    remaining: int
