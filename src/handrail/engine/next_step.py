"""The next step of a run: a pure function of its pipeline and state, so that any process can continue it."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from handrail.engine.pipeline import (
    Check,
    Failed,
    Gate,
    Outputs,
    Passed,
    Pause,
    Pipeline,
    Repair,
    Stage,
    Verdict,
    definition_errors,
)
from handrail.sessions.run_state import RunState

ISSUES_SHOWN = 5  # issues that the end of a run names


class RunStage(NamedTuple):
    """Start the stage, or continue it where it is open."""

    stage: Stage


class FailGate(NamedTuple):
    stage: Stage
    gate: Gate
    issues: tuple[str, ...]


class RepeatForRepair(NamedTuple):
    unit: Repair
    number: int


class NextRound(NamedTuple):
    """Repeat the stages that do one step of the request, for the next step."""

    first: str
    number: int


class PauseRun(NamedTuple):
    pause: Pause


class CompleteRun(NamedTuple):
    pass


class FailRun(NamedTuple):
    detail: str
    reason: Literal["failed", "unverified", "escalated"] = "failed"


NextStep = RunStage | FailGate | RepeatForRepair | NextRound | PauseRun | CompleteRun | FailRun
Checks = Mapping[str, Check]


def next_step(pipeline: Pipeline, run: RunState, outputs: Outputs, checks: Checks) -> NextStep:
    """The one thing to do now. `checks` are the functions that gates name; they are pure, too."""
    match run.step:
        case "open" if run.open:
            return RunStage(pipeline.stage(run.open.stage))
        case "done":
            return _after(pipeline, run, outputs, checks)
        case "flawed":
            return _repair(pipeline, run)
        case "resumed":
            return _next_stage(pipeline, run, outputs, checks)
        case _:
            return RunStage(pipeline.stage(run.start) if run.start else pipeline.first(run.skips))


def _after(pipeline: Pipeline, run: RunState, outputs: Outputs, checks: Checks) -> NextStep:
    """After a completed stage: its gates, its pause, another round, or the next stage."""
    stage = pipeline.stage(run.last)
    for gate in stage.gates:
        verdict = _verdict(gate.check, stage, outputs, checks)
        if isinstance(verdict, Failed):
            return FailGate(stage, gate, verdict.issues)
    pause = pipeline.pause_after(stage.name)
    if pause and pipeline.after(stage.name) and not pipeline.after(stage.name, run.skips):
        pause = None  # all that the user could agree to is skipped
    if pause and not (pause.when and isinstance(_verdict(pause.when, stage, outputs, checks), Passed)):
        return PauseRun(pause)
    again = pipeline.again
    repeats = again and stage.name == again.last and run.continues and run.rounds < again.most
    if again and repeats and isinstance(_verdict(again.check, stage, outputs, checks), Passed):
        return NextRound(again.first, run.rounds + 1)
    return _next_stage(pipeline, run, outputs, checks)


def _verdict(check: str, stage: Stage, outputs: Outputs, checks: Checks) -> Verdict:
    with definition_errors(f"The check {check} of the stage {stage.name}"):
        return checks[check](outputs[stage.name], outputs)


def _next_stage(pipeline: Pipeline, run: RunState, outputs: Outputs, checks: Checks) -> NextStep:
    last = pipeline.stage(run.last)
    stage = pipeline.after(run.last, run.skips)
    while stage and stage.unless and isinstance(_verdict(stage.unless, last, outputs, checks), Passed):
        stage = pipeline.after(stage.name, run.skips)
    return RunStage(stage) if stage else CompleteRun()


def _repair(pipeline: Pipeline, run: RunState) -> NextStep:
    """Repeat the repair unit; fail where there is none or its attempts are used up."""
    stage = pipeline.stage(run.flawed)
    unit = pipeline.repair_of(stage.name)
    done = run.repaired(unit.first, unit.last) if unit else 0
    gate = next((gate for gate in stage.gates if gate.check == run.gate), Gate(run.gate))
    repairs = gate.fails == "repair"
    if unit and repairs and done < unit.times:
        return RepeatForRepair(unit, done + 1)
    tried = f" after {done} of {unit.times} repairs" if unit and repairs else ""
    detail = f"{stage.name} did not pass {run.gate}{tried}: {_listed(run.wanting[stage.name])}"
    return FailRun(detail, gate.ends)


def _listed(issues: Sequence[str]) -> str:
    """The first issues, each on one line; the gate's event has all of them."""
    shown = "; ".join(" ".join(issue.split()) for issue in issues[:ISSUES_SHOWN])
    left = len(issues) - ISSUES_SHOWN
    return f"{shown}; and {left} more" if left > 0 else shown
