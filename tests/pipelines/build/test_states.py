"""The table of states: no path of the pipeline misses a gate on its way to `complete`."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.engine.next_step import (
    CompleteRun,
    FailGate,
    FailRun,
    NextRound,
    PauseRun,
    RepeatForRepair,
    RunStage,
    next_step,
)
from handrail.engine.pipeline import Failed, Output, Outputs, Passed, Verdict
from handrail.pipelines.build.pipeline import BUILD
from handrail.pipelines.build.states import (
    ENDS,
    TABLE,
    WORKING,
    BuildHistory,
    ImpossibleStep,
    history_of,
    step_from,
)
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
from handrail.sessions.run_state import RunState

GATES = ("G1_plan", "G2_audit", "G3_execution", "G4_documents", "G5_verification")


OFTEN = st.sampled_from([*[True] * 9, False])
HAPPENS = st.sampled_from([*["go"] * 40, *["kill"] * 4, "cancel"])


class Walk:
    """A run of the pipeline in which chance decides what gates and the user say, and when it is killed."""

    def __init__(self, data: st.DataObject, skips: tuple[str, ...]) -> None:
        self._data = data
        self._skips = skips
        self._events: list[Event] = []
        self.said: dict[str, bool] = {}
        self.completed = 0
        self.run, self.history = self._restored()
        self._add(RunStarted(run_id="r", turn_id="t", pipeline="build", skips=skips))

    def _restored(self) -> tuple[RunState, BuildHistory]:
        """What another process makes of the events."""
        run = RunState(run_id="r", pipeline="build", skips=self._skips)
        for event in self._events:
            run.apply(event)
        return run, history_of(self._events)

    def check(self, name: str) -> Callable[[Output, Outputs], Verdict]:
        def decide(_output: Output, _outputs: Outputs) -> Verdict:
            key = f"{name} {self.completed}"  # the same answer for the same output
            if key not in self.said:
                pauses = name == "plan_is_harmless"
                self.said[key] = self._data.draw(st.booleans() if pauses else OFTEN, label=name)
            return Passed() if self.said[key] else Failed((name,))

        return decide

    def go(self) -> None:
        while self.history.state not in ENDS:
            match self._data.draw(HAPPENS, label="happens"):
                case "kill":
                    before = self.run, self.history.transitions
                    self.run, self.history = self._restored()
                    assert (self.run, self.history.transitions) == before
                case "cancel" if self.run.step == "paused":
                    self._add(RunBrokenOff(run_id="r"))
                case "cancel":
                    self._add(RunFailed(run_id="r", reason="cancelled", detail=""))
                case _ if self.run.step == "paused":
                    self._add(RunResumed(run_id="r", again=self._data.draw(st.booleans(), label="again")))
                case _ if self.run.open:
                    self.completed += 1
                    self._add(StageCompleted(run_id="r", stage_id="s", stage=self.run.open.stage, output={}))
                case _:
                    self._next()

    def _next(self) -> None:
        checks = {name: self.check(name) for name in BUILD.functions.checks}
        outputs: dict[str, Any] = {name: {} for name in self.run.stages}
        match next_step(BUILD, self.run, outputs, checks):
            case RunStage(stage):
                self._add(StageStarted(run_id="r", stage_id="s", stage=stage.name, kind=stage.kind))
            case FailGate(stage, gate, issues):
                self._add(
                    GateFailed(run_id="r", stage_id="s", stage=stage.name, gate=gate.check, issues=issues)
                )
            case RepeatForRepair(unit, number):
                self._add(RunRepaired(run_id="r", first=unit.first, last=unit.last, number=number))
            case PauseRun(pause):
                self._add(RunPaused(run_id="r", stage=pause.after, text="", choices=(), exit=1))
            case CompleteRun():
                self._add(RunCompleted(run_id="r"))
            case FailRun(detail, reason):
                self._add(RunFailed(run_id="r", reason=reason, detail=detail))
            case NextRound():
                raise AssertionError("a build has no rounds of its own")

    def _add(self, event: Event) -> None:
        self._events.append(event)
        self.run.apply(event)
        self.history.saw(event)


@pytest.mark.promise("BUILD-1")
@settings(max_examples=200)
@given(st.data(), st.sampled_from([(), ("audit",)]))
def test_no_path_to_complete_misses_a_gate(data: st.DataObject, skips: tuple[str, ...]) -> None:
    walk = Walk(data, skips)
    walk.go()
    cancelled = [each.step for each in walk.history.transitions].count("cancelled")
    assert cancelled == (walk.history.state == "cancelled")
    if walk.history.state == "complete":
        for gate in GATES:
            last = [said for key, said in walk.said.items() if key.startswith(f"{gate} ")]
            assert last, gate
            assert last[-1], gate
        assert walk.history.transitions[-2].before == "awaiting_verification_gate"
        has_none = [said for key, said in walk.said.items() if key.startswith("has_no_conditions ")][-1]
        met = [said for key, said in walk.said.items() if key.startswith("G3_conditions ")]
        assert has_none or met[-1]


def test_complete_is_reached_only_from_applying_and_applying_only_through_the_last_gate() -> None:
    into = {
        after: [key for key, value in TABLE.items() if value == after] for after in ("complete", "applying")
    }
    assert into["complete"] == [("applying", "finished")]
    assert into["applying"] == [("awaiting_verification_gate", "verification_accepted")]


def test_ends_are_final_and_everything_else_can_be_cancelled_or_fail() -> None:
    assert not [key for key in TABLE if key[0] in ENDS]
    for state in WORKING:
        if state not in (*ENDS, "idle"):
            assert TABLE[state, "cancelled"] == "cancelled"
            assert TABLE[state, "failed"] == "failed"


def test_event_that_the_table_does_not_have_is_an_error() -> None:
    with pytest.raises(ImpossibleStep, match="from planning by finished"):
        step_from("planning", "finished")
    history = BuildHistory()
    history.saw(RunStarted(run_id="r", turn_id="t", pipeline="build"))
    with pytest.raises(ImpossibleStep, match="cannot start apply"):
        history.saw(StageStarted(run_id="r", stage_id="s", stage="apply", kind="code"))
