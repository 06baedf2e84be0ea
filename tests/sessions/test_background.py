"""Which commands run in the background, as events tell it."""

import pytest
from msgspec import convert
from msgspec.json import decode

from handrail.context.message_context import status_block
from handrail.protocol.events import (
    BackgroundEnded,
    BackgroundStarted,
    Event,
    Recorded,
    SessionCopied,
    TurnStarted,
)
from handrail.protocol.values import to_json
from handrail.sessions.session_state import SessionState

STARTED = BackgroundStarted(background_id="b1", turn_id="t_1", call_id="c_1", command="npm run dev")
ENDED = BackgroundEnded(background_id="b1", command="npm run dev", how="exited", code=1, summary="exit 1")


def folded(*events: Event) -> SessionState:
    state = SessionState()
    for seq, event in enumerate(events, start=1):
        state.apply(Recorded("session:s_1", seq, 100.0 + seq, event))
    return state


def test_one_that_was_started_runs_until_it_has_ended() -> None:
    state = folded(STARTED)
    assert [(each.id, each.command, each.since) for each in state.background.running.values()] == [
        ("b1", "npm run dev", 101.0)
    ]
    assert state.background.next_id == "b2"
    assert decode(to_json(state), type=SessionState) == state
    assert not folded(STARTED, ENDED).background.running


@pytest.mark.promise("CMD-10")
@pytest.mark.parametrize("how", ["fork", "import"])
def test_a_copy_of_the_session_has_none(how: str) -> None:
    copied = convert({"how": how}, SessionCopied)
    state = folded(STARTED, copied)
    assert not state.background.running
    assert state.background.next_id == "b2"


@pytest.mark.promise("CMD-9")
def test_the_model_is_told_what_runs_and_once_what_has_ended() -> None:
    assert "Background command b1 runs: npm run dev" in status_block(folded(STARTED), 0.0, dated=False)
    ended = folded(STARTED, ENDED)
    assert "Background command b1 has ended, exit 1: npm run dev" in status_block(ended, 0.0, dated=False)
    turn = TurnStarted(turn_id="t_2", number=2, model="m", mode="ask")
    assert status_block(folded(STARTED, ENDED, turn), 0.0, dated=False) == ""
