"""Events of a run (a message going through a pipeline) and the values it keeps."""

from typing import Any, Literal

from msgspec import field

from handrail.protocol.events.base import EventBase
from handrail.protocol.values import AttachedImage, ChecklistItem, FinishReason, Mode, ReadAs, Value

StageKind = Literal["work", "ask", "code", "answer"]
"""`work`: the tool loop in the session's conversation. `answer`: one answer in it. `ask`: a question of the
stage's own, outside of it. `code`: a function."""


class MenuChoice(Value):
    text: str
    then: Literal["go_on", "again", "leave"]
    """Continue with the next stage, repeat the last one, or leave the run."""


class RunStarted(EventBase, tag="run_started"):
    run_id: str
    turn_id: str
    pipeline: str
    question: str = ""
    """What the user asked, for a run outside the conversation."""
    conversational: bool = False
    """All of it happens in the session's conversation, so it needs no summary and no pause."""
    reads_only: bool = False
    """It writes and runs nothing, whatever the mode."""
    skips: tuple[str, ...] = ()
    continues: bool = False
    """Stages that run once per step repeat by themselves while steps are left."""
    sha256: str = ""
    """Hash of the files that define the pipeline; empty: it is built in."""
    kept: dict[str, Any] = field(default_factory=dict)
    """Values that earlier runs of the pipeline kept, as they were at the start."""
    item: ChecklistItem | None = None
    """The item of a checklist that a build is for."""
    mode: Mode | None = None
    """The run is allowed no more than this mode allows; None: what the session's allows."""
    tools: tuple[str, ...] = ()
    """The only tools that it can use; empty: all."""
    sources: tuple[str, ...] = ()
    """Those that its agent needs: they are switched on for the run."""
    budget: str = ""
    """The most that the run of an agent may use, in words: the user is told before it starts."""


class StageStarted(EventBase, tag="stage_started"):
    """Committed before the stage does anything."""

    run_id: str
    stage_id: str
    stage: str
    kind: StageKind
    text: str = ""
    """What a stage adds to the conversation at its start, if anything."""
    number: int = 0
    """Its place among the stages of the pipeline, from 1."""
    of: int = 0
    tools: tuple[str, ...] = ()
    """The only tools that its model can use, of those of the run; empty: all of them."""


class StageCompleted(EventBase, tag="stage_completed"):
    run_id: str
    stage_id: str
    stage: str
    output: dict[str, Any] | None = None
    """As its schema says; None if it is so large that it is a blob."""
    blob: str = ""
    read: tuple[ReadAs, ...] = ()
    """How the model's answer was parsed, if the output is one."""


class GateFailed(EventBase, tag="gate_failed"):
    """A gate rejected a stage's output."""

    run_id: str
    stage_id: str
    stage: str
    gate: str
    issues: tuple[str, ...]


class RunRepaired(EventBase, tag="run_repaired"):
    """Stages run again, with the issues as feedback."""

    run_id: str
    first: str
    last: str
    number: int
    """1 for the first time."""


class RunContinued(EventBase, tag="run_continued"):
    """Stages run again, for the next steps of the same request."""

    run_id: str
    first: str
    number: int
    """2 for the second time."""


class RunPaused(EventBase, tag="run_paused"):
    """The run waits for the user, also across restarts."""

    run_id: str
    stage: str
    text: str
    """What the user sees, including the numbered choices."""
    choices: tuple[MenuChoice, ...]
    exit: int
    """The number of the choice that leaves the run."""
    picks: tuple[str, ...] = ()
    """Labels in the text: a message that names only these is an answer."""


class RunResumed(EventBase, tag="run_resumed"):
    run_id: str
    feedback: str = ""
    again: bool = False
    """The stage before the pause runs again."""
    choice: str = ""


class BreakoutPending(EventBase, tag="breakout_pending", kw_only=True):
    """The user seems to want to leave the run, and was asked to confirm."""

    run_id: str
    message_id: str
    message: str
    """The message that asked to leave; it is answered once the user confirms."""
    images: tuple[AttachedImage, ...] = ()
    text: str
    route: str = ""
    """The route the user chose for the message, after leaving."""
    suggested: bool = False
    """A model's suggestion that the user picked."""


class RunBrokenOff(EventBase, tag="run_broken_off"):
    """The user left the run; its results stay."""

    run_id: str
    summary: str = ""


class RunCompleted(EventBase, tag="run_completed"):
    run_id: str
    text: str = ""
    summary: str = ""
    """What later turns are told about it."""


class RunFailed(EventBase, tag="run_failed"):
    run_id: str
    reason: FinishReason
    detail: str = ""
    """For the user: why, and what to do."""
    summary: str = ""


class ValueKept(EventBase, tag="value_kept"):
    """A named value for later runs of an agent; the latest of a name counts."""

    pipeline: str
    name: str
    value: Any
    run_id: str


StageEvent = StageStarted | StageCompleted | GateFailed | ValueKept
PauseEvent = RunPaused | RunResumed | BreakoutPending | RunBrokenOff
RunEvent = StageEvent | PauseEvent | RunStarted | RunRepaired | RunContinued | RunCompleted | RunFailed
