"""Events of split requests: the plan, each subtask, conflicts, verification and the end."""

from handrail.protocol.events.base import EventBase
from handrail.protocol.subtask import (
    Export,
    PauseReason,
    PlanSource,
    Settlement,
    SplitConflict,
    SplitEnd,
    SplitLimits,
    SplitPlan,
    SubtaskFile,
)
from handrail.protocol.values import Usage


class SplitPlanned(EventBase, tag="split_planned"):
    """A plan, or the plan as the user has edited it; it begins when the user starts it."""

    plan: SplitPlan
    source: PlanSource


class SplitStarted(EventBase, tag="split_started"):
    """The user has started the plan. The contents of all its files are stored."""

    base: dict[str, str]
    """{path: hash of its content}; a file that does not exist is not in it."""


class SubtaskStarted(EventBase, tag="subtask_started"):
    """Committed before its work begins. A killed subtask begins again with the same number."""

    subtask_id: str
    attempt: int


class SubtaskDone(EventBase, tag="subtask_done"):
    subtask_id: str
    files: tuple[SubtaskFile, ...]
    exports: tuple[Export, ...] = ()
    summary: str = ""
    seconds: float = 0.0
    usage: Usage = Usage()
    """What it spent in a log of its own; requests of this session have events of their own."""
    cost_usd: float | None = 0.0
    worker: str = ""
    """Who asked the model; empty: the process that ran the split."""


class SubtaskFailed(EventBase, tag="subtask_failed"):
    subtask_id: str
    attempt: int
    detail: str
    last: bool
    """Not tried again, until the user says so."""
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    worker: str = ""


class SubtasksCancelled(EventBase, tag="subtasks_cancelled"):
    """The user does not want these; what depends on them is among them."""

    subtask_ids: tuple[str, ...]


class SubtasksReset(EventBase, tag="subtasks_reset"):
    """The user wants these once more; what depends on them is among them."""

    subtask_ids: tuple[str, ...]


class SplitPaused(EventBase, tag="split_paused"):
    """Nothing starts any more until the user resumes it."""

    why: PauseReason
    detail: str = ""


class SplitStalled(EventBase, tag="split_stalled"):
    """No worker can take the jobs, or the queue cannot be reached; it goes on by itself."""

    detail: str
    """Why, and what to do; empty: nothing is in the way any longer."""


class SplitResumed(EventBase, tag="split_resumed"):
    limits: SplitLimits | None = None
    """New ones; None: as before."""


class ConflictsFound(EventBase, tag="conflicts_found"):
    """All overlaps that are not settled; nothing is applied while there is one."""

    conflicts: tuple[SplitConflict, ...]


class ConflictSettled(EventBase, tag="conflict_settled"):
    conflict_id: str
    by: Settlement
    text: str | None
    """What stands there instead of both sides; None: the file is deleted."""


class SplitVerified(EventBase, tag="split_verified"):
    """What the checks say about the merged result, before it is applied."""

    status: str
    checks: tuple[str, ...] = ()
    detail: str = ""


class SplitEnded(EventBase, tag="split_ended"):
    state: SplitEnd
    detail: str = ""
    files: tuple[str, ...] = ()


SplitEvent = (
    SplitPlanned
    | SplitStarted
    | SubtaskStarted
    | SubtaskDone
    | SubtaskFailed
    | SubtasksCancelled
    | SubtasksReset
    | SplitPaused
    | SplitStalled
    | SplitResumed
    | ConflictsFound
    | ConflictSettled
    | SplitVerified
    | SplitEnded
)
