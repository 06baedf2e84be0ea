"""A message that only asks: answered in the conversation, and nothing is changed for it."""

from pathlib import Path

import pytest

from handrail.protocol.events import ChangeApplied, RunStarted, ToolFinished
from tests.engine.conversation import call, conversation, run

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def routed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


async def test_a_greeting_costs_one_request(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "Hello!"}]) as talk:
        assert (await talk.turn("hi")).reason == "answered"
        assert len(talk.requests) == 1
        assert [event.pipeline for event in talk.all(RunStarted)] == ["chat"]


async def test_nothing_is_changed_or_run_for_a_question_in_mode_auto(tmp_path: Path) -> None:
    script = [call("write", path="a.py", text="x = 1\n"), run("touch b"), {"text": "Well."}]
    async with conversation(tmp_path, script, mode="auto", allow=("touch",)) as talk:
        assert (await talk.turn("what does a.py do?")).reason == "answered"
        errors = [event.error for event in talk.all(ToolFinished)]
        assert [error and error.reason for error in errors] == ["mode_forbids"] * 2
        assert not talk.all(ChangeApplied)
    assert not list(tmp_path.iterdir())
