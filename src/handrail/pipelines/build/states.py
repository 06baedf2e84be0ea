"""The states of a build: a closed table, and the history of a run read from its events.

    plan -> G1 -> audit -> G2 -> execute -> G3 -> document -> G4 -> verify -> G5 -> apply -> complete

The pipeline engine decides what runs next; this table says what may follow what. Each transition
is an event of the log, so the history needs no record of its own.
An event that the table does not have is an error.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from handrail.protocol.errors import HandrailError
from handrail.protocol.events import (
    Event,
    GateFailed,
    RunBrokenOff,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunRepaired,
    RunResumed,
    RunStarted,
    StageCompleted,
    StageStarted,
)

BASELINE, SURVEY, PLAN, READ, AUDIT, REVIEW = "baseline", "survey", "plan", "read", "audit", "review"
BRIEF, EXECUTE, ASSEMBLE, REREAD = "brief", "execute", "assemble", "reread"
DOCUMENT, VERIFY, APPLY = "document", "verify", "apply"

State = Literal[
    "idle",
    "planning",
    "awaiting_plan_gate",
    "auditing",
    "awaiting_audit_gate",
    "paused",
    "executing",
    "awaiting_execution_gate",
    "documenting",
    "awaiting_documentation_gate",
    "verifying",
    "awaiting_verification_gate",
    "self_correcting",
    "applying",
    "complete",
    "unverified",
    "failed",
    "escalated",
    "cancelled",
]
Step = Literal[
    "started",
    "planned",
    "plan_accepted",
    "replanned",
    "audited",
    "audit_accepted",
    "paused",
    "resumed",
    "audited_again",
    "executing_again",
    "executed",
    "execution_accepted",
    "documented",
    "documents_accepted",
    "verified",
    "verification_accepted",
    "corrected",
    "finished",
    "unverified",
    "failed",
    "escalated",
    "cancelled",
]
ENDS: tuple[State, ...] = ("complete", "unverified", "failed", "escalated", "cancelled")

TABLE: dict[tuple[State, Step], State] = {
    ("idle", "started"): "planning",
    ("planning", "planned"): "awaiting_plan_gate",
    # G1: the plan is well formed, and inside the workspace
    ("awaiting_plan_gate", "plan_accepted"): "auditing",
    ("awaiting_plan_gate", "replanned"): "planning",
    ("auditing", "audited"): "awaiting_audit_gate",
    # G2: the audit did not reject it
    ("awaiting_audit_gate", "audit_accepted"): "executing",
    ("awaiting_audit_gate", "replanned"): "planning",
    ("awaiting_audit_gate", "paused"): "paused",
    ("paused", "resumed"): "awaiting_audit_gate",
    ("paused", "audited_again"): "auditing",
    ("executing", "executed"): "awaiting_execution_gate",
    # G3: every change is planned, allowed, and can be parsed; what the plan creates is there, what it deletes
    # is gone, and the conditions of the audit are met
    ("awaiting_execution_gate", "execution_accepted"): "documenting",
    ("awaiting_execution_gate", "corrected"): "self_correcting",
    ("self_correcting", "executing_again"): "executing",
    ("documenting", "documented"): "awaiting_documentation_gate",
    # G4: the documents only grew
    ("awaiting_documentation_gate", "documents_accepted"): "verifying",
    ("verifying", "verified"): "awaiting_verification_gate",
    # G5: the project's own checks agree
    ("awaiting_verification_gate", "verification_accepted"): "applying",
    ("awaiting_verification_gate", "corrected"): "self_correcting",
    ("awaiting_verification_gate", "unverified"): "unverified",
    ("applying", "finished"): "complete",
}
WORKING: tuple[State, ...] = tuple(dict.fromkeys([*(state for state, _ in TABLE), *TABLE.values()]))
TABLE |= {(state, "failed"): "failed" for state in WORKING if state not in (*ENDS, "idle")}
TABLE |= {(state, "cancelled"): "cancelled" for state in WORKING if state not in (*ENDS, "idle")}
TABLE |= {(state, "escalated"): "escalated" for state in WORKING if state.startswith("awaiting_")}
COMPLETED: dict[str, Step] = {
    PLAN: "planned",
    REVIEW: "audited",
    ASSEMBLE: "executed",
    DOCUMENT: "documented",
    VERIFY: "verified",
}
"""What the end of a stage means."""
PASSED: dict[str, tuple[State, Step]] = {
    READ: ("awaiting_plan_gate", "plan_accepted"),
    BRIEF: ("awaiting_audit_gate", "audit_accepted"),
    EXECUTE: ("self_correcting", "executing_again"),
    DOCUMENT: ("awaiting_execution_gate", "execution_accepted"),
    VERIFY: ("awaiting_documentation_gate", "documents_accepted"),
    APPLY: ("awaiting_verification_gate", "verification_accepted"),
}
"""What the start of a stage means: the gate before it was passed."""
GOES_ON: dict[str, tuple[State, ...]] = {
    BRIEF: ("self_correcting",),
    EXECUTE: ("executing",),
    BASELINE: ("planning",),
    SURVEY: ("planning",),
    PLAN: ("planning",),
    AUDIT: ("auditing",),
    REVIEW: ("auditing",),
    ASSEMBLE: ("executing",),
    REREAD: ("awaiting_execution_gate",),
}
"""States in which a stage starts without a transition."""


class ImpossibleStep(HandrailError):
    """A build did something that the table does not have: a bug of Handrail, never a result."""


class Transition(NamedTuple):
    before: State
    step: Step
    after: State
    why: str = ""
    seq: int = 0


def step_from(state: State, step: Step) -> State:
    """The next state; raises ImpossibleStep where the table has none."""
    if (state, step) not in TABLE:
        raise ImpossibleStep(f"A build cannot go from {state} by {step}. Report this as a bug of Handrail.")
    return TABLE[state, step]


class BuildHistory:
    """The transitions of one run, from its events."""

    def __init__(self) -> None:
        self.state: State = "idle"
        self.transitions: list[Transition] = []
        self._why = ""

    def saw(self, event: Event, seq: int = 0) -> Transition | None:
        """Take the next event of the run; the transition, if it is one. Raises ImpossibleStep."""
        if isinstance(event, GateFailed):
            self._why = "; ".join(event.issues)[:500]
        for step in self._steps(event):
            after, before = step_from(self.state, step), self.state
            self.state = after
            self.transitions.append(Transition(before, step, after, self._reason(event), seq))
            return self.transitions[-1]
        return None

    def _reason(self, event: Event) -> str:
        why, self._why = self._why, "" if isinstance(event, RunRepaired) else self._why
        match event:
            case RunRepaired():
                return why
            case RunFailed():
                return event.detail
        return ""

    def _steps(self, event: Event) -> Iterator[Step]:
        match event:
            case RunStarted():
                yield "started"
            case StageStarted(stage=stage):
                if self.state not in GOES_ON.get(stage, ()):
                    expected, step = PASSED.get(stage, ("idle", "started"))
                    yield step if self.state == expected else _impossible(self.state, stage)
            case StageCompleted(stage=stage) if stage in COMPLETED:
                yield COMPLETED[stage]
            case RunRepaired(first=first):
                yield "corrected" if first == BRIEF else "replanned"
            case RunPaused():
                yield "paused"
            case RunResumed(again=again):
                yield "audited_again" if again else "resumed"
            case RunCompleted():
                yield "finished"
            case RunBrokenOff():
                yield "cancelled"
            case RunFailed(reason="unverified"):
                yield "unverified"
            case RunFailed(reason="escalated"):
                yield "escalated"
            case RunFailed(reason="cancelled"):
                yield "cancelled"
            case RunFailed():
                yield "failed"


def _impossible(state: State, stage: str) -> Step:
    raise ImpossibleStep(f"A build in the state {state} cannot start {stage}. Report this as a bug.")


def history_of(events: Iterable[Event]) -> BuildHistory:
    """The history of a run from all its events; raises ImpossibleStep."""
    history = BuildHistory()
    for event in events:
        history.saw(event)
    return history
