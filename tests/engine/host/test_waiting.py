"""Turns that wait, and processes that leave: nothing is thrown away and nothing is cut off."""

from pathlib import Path

import pytest

from handrail.protocol.commands import AnswerApproval, Cancel, SendMessage, SetMode
from handrail.protocol.events import ApprovalAsked, ModeSet, ToolFinished, TurnFinished, UserMessage
from handrail.protocol.values import to_json
from handrail.sessions.session import Session
from tests.conftest import NO_SERVER
from tests.engine.conversation import conversation, run, script_file

pytestmark = pytest.mark.anyio


@pytest.mark.promise("ENG-25")
async def test_a_waiting_call_is_kept_when_no_model_answers_at_the_restart(tmp_path: Path) -> None:
    async with conversation(tmp_path, [run("touch made"), {"text": "done"}]) as talk:
        await talk.say("make it")
        await talk.until(ApprovalAsked)
        session_id = talk.id
    async with conversation(tmp_path, None, session=session_id, settings=NO_SERVER) as talk:
        talk.app.attach(session_id)
        assert talk.app.state(session_id).approvals
        await talk.send(Cancel())
        finished = await talk.until(TurnFinished)
        assert finished.reason == "cancelled"
    assert not (tmp_path / "made").exists()


@pytest.mark.promise("ENG-25")
async def test_the_word_given_after_a_restart_goes_on_with_the_same_model(tmp_path: Path) -> None:
    model = script_file(tmp_path, [run("touch made"), {"text": "done"}])
    async with conversation(tmp_path, None, model=model) as talk:
        await talk.say("make it")
        asked = await talk.until(ApprovalAsked)
        session_id = talk.id
    async with conversation(tmp_path, None, session=session_id, settings=NO_SERVER) as talk:
        assert (await talk.app.chosen_model(session_id)).reference == model
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="reject"))
        refused = await talk.until(ToolFinished)
        assert refused.error
        assert refused.error.reason == "user_rejected"
        assert (await talk.until(TurnFinished)).reason == "answered"


@pytest.mark.promise("ENG-26")
async def test_a_process_that_leaves_begins_no_turn_for_another(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one"}, {"text": "two"}], answerable=False) as talk:
        await talk.turn("mine")
        other = SendMessage(text="of another process")
        talk.app.log.put(f"session:{talk.id}", to_json(other))
        mine = SendMessage(text="mine again")
        await talk.send(mine)
        await talk.until(UserMessage, lambda event: event.message_id == mine.message_id)
        await talk.until(TurnFinished)
        late = SendMessage(text="too late")
        talk.app.log.put(f"session:{talk.id}", to_json(late))
        await talk.send(SetMode(mode="plan"))
        await talk.until(ModeSet)
        waiting = [command for _, command in Session(talk.app.log, talk.id).waiting()]
    assert waiting == [late]
