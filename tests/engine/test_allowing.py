"""An entry that the user allows while asked is kept, and counts in every turn and session that follows."""

from pathlib import Path

import pytest

from handrail.protocol.commands import AnswerApproval
from handrail.protocol.events import ApprovalAsked, ToolFinished, TurnFinished
from tests.engine.conversation import conversation, run

pytestmark = pytest.mark.anyio


@pytest.mark.promise("POL-14")
async def test_an_allowed_command_is_not_asked_about_in_later_turns_and_sessions(
    tmp_path: Path, home: Path
) -> None:
    answers = [run("tr a b"), {"text": "done"}, run("tr a b"), {"text": "done"}]
    async with conversation(tmp_path, answers, mode="auto") as talk:
        await talk.say("go")
        asked = await talk.until(ApprovalAsked)
        assert asked.entry == "tr a b"
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="allow"))
        await talk.until(TurnFinished)
        settings = talk.app.places.settings
        await talk.turn("again")
        assert len(talk.all(ApprovalAsked)) == 1
        assert [each.status for each in talk.all(ToolFinished)] == ["ok", "ok"]
    assert settings.is_relative_to(home)
    assert 'allow = ["tr a b"]' in settings.read_text()
    async with conversation(tmp_path, answers, mode="auto") as talk:
        await talk.turn("go")
        assert talk.all(ApprovalAsked) == []
        assert talk.app.settings.commands.allow == ("tr a b",)
