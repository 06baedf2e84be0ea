"""A message during a turn is shown at the next step, or begins the next turn; none is lost or doubled."""

from pathlib import Path

import pytest

from handrail.models.model import UserTurn
from handrail.protocol.events import Answered, ToolStarted, TurnFinished, UserMessage
from tests.engine.conversation import conversation, run, words

pytestmark = pytest.mark.anyio

WAITS = "until [ -e go ]; do sleep 0.01; done"


@pytest.mark.promise("ENG-6")
async def test_message_during_a_command_is_shown_at_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "wait.sh").write_text(WAITS)
    answers = [run("sh wait.sh"), {"text": "understood"}]
    async with conversation(tmp_path, answers, mode="auto", allow=("sh",)) as talk:
        await talk.say("wait")
        await talk.until(ToolStarted)
        await talk.say("use tabs")
        await talk.say("and two blank lines")
        (tmp_path / "go").touch()
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert not talk.app.log.waiting(f"session:{talk.id}")
    assert [(one.text, one.steering) for one in talk.all(UserMessage)] == [
        ("wait", False),
        ("use tabs", True),
        ("and two blank lines", True),
    ]
    assert len({one.turn_id for one in talk.all(UserMessage)}) == 1
    last = talk.requests[1].messages[-1]
    assert isinstance(last, UserTurn)
    assert last.text == "use tabs\n\nand two blank lines"


@pytest.mark.promise("ENG-6")
async def test_message_during_the_last_answer_begins_the_next_turn(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one two"}, {"text": "three"}, {"text": "no"}]) as talk:
        talk.held.hold(0, 1)
        await talk.say("first")
        await talk.held.reached(0, 1)
        await talk.say("second")
        talk.held.let_go(0, 1)
        first, second = await talk.until(TurnFinished), await talk.until(TurnFinished)
    assert first.turn_id != second.turn_id
    assert [one.steering for one in talk.all(UserMessage)] == [False, False]
    assert [one.text for one in talk.all(Answered)] == ["one two", "three"]
    assert words(talk.requests[1]).count("second") == 1


@pytest.mark.promise("ENG-6")
async def test_messages_in_quick_succession_all_arrive_in_order(tmp_path: Path) -> None:
    answers = [{"text": "yes", "when": "number"}]
    async with conversation(tmp_path, answers) as talk:
        for number in range(30):
            await talk.say(f"number {number};")
        await talk.until(UserMessage, lambda one: one.text == "number 29;")
        await talk.until(TurnFinished)
        assert not talk.app.log.waiting(f"session:{talk.id}")
    assert [one.text for one in talk.all(UserMessage)] == [f"number {number};" for number in range(30)]
    shown = words(talk.requests[-1])
    assert all(shown.count(f"number {number};") == 1 for number in range(30))
