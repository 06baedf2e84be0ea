"""What comes next in a run: a pure function of its pipeline and its state, so that any process can go on."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from handrail.engine.pipeline.definition import (
    Again,
    Failed,
    Gate,
    Passed,
    Pause,
    Pipeline,
    Repair,
    Stage,
    Verdict,
)
from handrail.sessions.run_state import RunState

SHOWN = 5
"""Issues that the end of a run names."""


class Do(NamedTuple):
    """Do the stage, or go on with it where it is open."""

    stage: Stage


class Flawed(NamedTuple):
    """A gate found the output of the stage wanting."""

    stage: Stage
    gate: Gate
    issues: tuple[str, ...]


class Redo(NamedTuple):
    unit: Repair
    number: int


class Onward(NamedTuple):
    """Do the stages of one step again, for the next one."""

    first: str
    number: int


class Stop(NamedTuple):
    """Pause here."""

    pause: Pause


class Complete(NamedTuple):
    pass


class Fail(NamedTuple):
    detail: str


Next = Do | Flawed | Redo | Onward | Stop | Complete | Fail
Judge = Callable[[Stage, Gate], Verdict]


def following(pipeline: Pipeline, run: RunState, judge: Judge) -> Next:
    """The one thing to do now."""
    match run.step:
        case "open" if run.open:
            return Do(pipeline.stage(run.open.stage))
        case "done":
            return _after(pipeline, run, judge)
        case "flawed":
            return _mended(pipeline, run)
        case "resumed":
            return _next(pipeline, run)
        case _:
            return Do(pipeline.stage(run.start) if run.start else pipeline.first(run.skips))


def _after(pipeline: Pipeline, run: RunState, judge: Judge) -> Next:
    stage = pipeline.stage(run.last)
    for gate in stage.gates:
        verdict = judge(stage, gate)
        if isinstance(verdict, Failed):
            return Flawed(stage, gate, verdict.issues)
    if pause := pipeline.pause_after(stage.name):
        return Stop(pause)
    again = pipeline.again
    if again and stage.name == again.last and _goes_on(again, run):
        left = judge(stage, Gate(again.check))
        return Onward(again.first, run.rounds + 1) if isinstance(left, Passed) else _next(pipeline, run)
    return _next(pipeline, run)


def _goes_on(again: Again, run: RunState) -> bool:
    return run.continues and run.rounds < again.most


def _next(pipeline: Pipeline, run: RunState) -> Next:
    stage = pipeline.after(run.last, run.skips)
    return Do(stage) if stage else Complete()


def _mended(pipeline: Pipeline, run: RunState) -> Next:
    """Once more from the start of the repair unit, or the end where there is none or it was tried enough."""
    stage = pipeline.stage(run.flawed)
    unit = pipeline.repair_of(stage.name)
    done = run.repaired(unit.first, unit.last) if unit else 0
    repairs = any(gate.check == run.gate and gate.fails == "repair" for gate in stage.gates)
    if unit and repairs and done < unit.times:
        return Redo(unit, done + 1)
    tried = f" after {done} of {unit.times} repairs" if unit and repairs else ""
    return Fail(f"{stage.name} did not pass {run.gate}{tried}: {_listed(run.wanting[stage.name])}")


def _listed(issues: Sequence[str]) -> str:
    """The first few, each on one line; all of them are in the event of the gate."""
    told = "; ".join(" ".join(issue.split()) for issue in issues[:SHOWN])
    left = len(issues) - SHOWN
    return f"{told}; and {left} more" if left > 0 else told
