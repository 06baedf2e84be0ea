"""What later turns are told of runs that are over."""

import pytest

from handrail.context.message_context import untold_run_summaries
from handrail.protocol.events import Recorded, UserMessage
from handrail.sessions.run_state import EndedRun
from handrail.sessions.session_state import SessionState


@pytest.mark.promise("RUN-5")
def test_a_run_that_does_not_fit_into_one_message_is_told_with_the_next() -> None:
    state = SessionState()
    state.runs.ended = [
        EndedRun(run_id=f"run_{number}", seq=number, summary=f"Run {number} {'x' * 1_400}")
        for number in (1, 2)
    ]
    told = list[str]()
    for seq in (3, 4):
        part = untold_run_summaries(state, 8_000)
        told += part.runs
        assert all(f"Run {run[-1]} " in part.text for run in part.runs), "it counts as told, and is not there"
        message = UserMessage(message_id="m", turn_id="t", text="go on", runs=part.runs)
        state.runs.apply(Recorded("session:s_1", seq, 0.0, message))
    assert told == ["run_2", "run_1"]
    assert untold_run_summaries(state, 8_000).runs == ()
