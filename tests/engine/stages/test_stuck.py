"""Going in circles is noticed; getting on slowly is not."""

from handrail.engine.stages.work import stuck_reason
from handrail.sessions.turn_state import FinishedCall


def done(call: str, result: str, *, failed: bool = False) -> FinishedCall:
    return FinishedCall(call, result, failed)


def test_same_call_with_the_same_result_three_times_is_stuck() -> None:
    assert not stuck_reason([done("a", "1"), done("a", "1")])
    assert "same call" in stuck_reason([done("b", "0"), done("a", "1"), done("a", "1"), done("a", "1")])


def test_same_call_with_other_results_is_not() -> None:
    assert not stuck_reason([done("a", str(number), failed=True) for number in range(12)])


def test_alternating_failures_are_stuck_and_alternating_successes_are_not() -> None:
    failing = [done("a", "1", failed=True), done("b", "2", failed=True)] * 3
    assert "alternating" in stuck_reason(failing)
    assert "alternating" in stuck_reason([done("write", "1", failed=True), done("read", "2")] * 3)
    assert not stuck_reason([done("a", "1"), done("b", "2")] * 3)


def test_other_calls_that_are_refused_in_the_same_words_are_stuck() -> None:
    refused = [done(f"write {number}", "no_hash", failed=True) for number in range(4)]
    assert not stuck_reason(refused[:3])
    assert "in the same way" in stuck_reason(refused)
    assert not stuck_reason([done(f"run {number}", "ok") for number in range(8)])
