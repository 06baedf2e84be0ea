"""Events of a run: one message on its way through a pipeline."""

from typing import Any, Literal

from pydantic import Field

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import AttachedImage, FinishReason, ReadAs, Value

StageKind = Literal["work", "ask", "code", "answer"]
"""The tool loop in the session's conversation; an answer to a question of the stage's own; code."""


class Choice(Value):
    """A line of a menu."""

    text: str
    then: Literal["go_on", "again", "leave"]
    """Go on with the next stage, do the last one again, or leave the run."""


class RunStarted(EventBase):
    type: Literal["run_started"] = "run_started"
    run_id: str
    turn_id: str
    pipeline: str
    question: str = ""
    """What the user asked, of a run that is more than the conversation."""
    conversational: bool = False
    """All of it happens in the session's conversation, which tells what it did and can go on at any time."""
    reads_only: bool = False
    """Nothing is written or run in it, whatever the mode."""
    skips: tuple[str, ...] = ()
    """Stages that this message does not need."""
    continues: bool = False
    """Stages that are done once for each step are done again by themselves while steps are left."""
    sha256: str = ""
    """Of the files that define the pipeline; empty: it comes with Handrail."""
    kept: dict[str, Any] = Field(default_factory=dict)
    """What earlier runs of the pipeline kept, as it was at the start."""


class StageStarted(EventBase):
    """Committed before the stage does anything."""

    type: Literal["stage_started"] = "stage_started"
    run_id: str
    stage_id: str
    stage: str
    kind: StageKind
    text: str = ""
    """What the conversation is told, of a stage that works in it and has something to tell."""
    number: int = 0
    """Its place among the stages of the pipeline, from 1."""
    of: int = 0
    """How many there are."""


class StageCompleted(EventBase):
    type: Literal["stage_completed"] = "stage_completed"
    run_id: str
    stage_id: str
    stage: str
    output: dict[str, Any] | None = None
    """As its schema says; None where it is so large that it is a blob."""
    blob: str = ""
    read: tuple[ReadAs, ...] = ()
    """How the model's answer was read, where the output is one."""


class GateFailed(EventBase):
    """A stage's output was found wanting."""

    type: Literal["gate_failed"] = "gate_failed"
    run_id: str
    stage_id: str
    stage: str
    gate: str
    issues: tuple[str, ...]


class RunRepaired(EventBase):
    """Stages are done again, with what was wrong as feedback."""

    type: Literal["run_repaired"] = "run_repaired"
    run_id: str
    first: str
    last: str
    number: int
    """1 for the first time."""


class RunContinued(EventBase):
    """Stages are done again, for the next steps of the same request."""

    type: Literal["run_continued"] = "run_continued"
    run_id: str
    first: str
    number: int
    """2 for the second time."""


class RunPaused(EventBase):
    """The run waits for the user's word, over any restart."""

    type: Literal["run_paused"] = "run_paused"
    run_id: str
    stage: str
    text: str
    """What the user is shown, the numbered choices included."""
    choices: tuple[Choice, ...]
    exit: int
    """The number of the choice that leaves the run."""


class RunResumed(EventBase):
    type: Literal["run_resumed"] = "run_resumed"
    run_id: str
    feedback: str = ""
    """What the user said to it in their own words."""
    again: bool = False
    """The stage before the pause is done again."""
    choice: str = ""
    """The line of the menu that they chose."""


class BreakoutPending(EventBase):
    """The user seems to want to leave, and was asked whether that is so."""

    type: Literal["breakout_pending"] = "breakout_pending"
    run_id: str
    message_id: str
    message: str
    """What asked to leave; it is answered when the user says so."""
    images: tuple[AttachedImage, ...] = ()
    text: str
    """What the user is shown."""
    route: str = ""
    """Where the message goes by the user's word, once they have left."""
    suggested: bool = False
    """The words are a model's: the user picked them."""


class RunBrokenOff(EventBase):
    """The user left the run; what it had found stays."""

    type: Literal["run_broken_off"] = "run_broken_off"
    run_id: str
    summary: str = ""


class RunCompleted(EventBase):
    type: Literal["run_completed"] = "run_completed"
    run_id: str
    text: str = ""
    """What the user is shown at the end."""
    summary: str = ""
    """What later turns are told of it."""


class RunFailed(EventBase):
    type: Literal["run_failed"] = "run_failed"
    run_id: str
    reason: FinishReason
    detail: str = ""
    """For the user: why, and what to do."""
    summary: str = ""
