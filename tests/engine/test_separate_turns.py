"""What is said to a session whose run works or is paused, and is not for that run."""

from pathlib import Path

import pytest

from handrail.engine.pipeline import Pipeline, Stage
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import (
    BreakoutPending,
    CheckFinished,
    RunBrokenOff,
    RunResumed,
    RunStarted,
    TurnFinished,
    UserMessage,
)
from tests.engine.breakout.test_paused_run import UNPAUSED, say_while_it_plans
from tests.engine.conversation import conversation, words
from tests.engine.scripted import QUESTION, answers, catalogue
from tests.pipelines.agents import agent

pytestmark = pytest.mark.anyio


@pytest.mark.promise("RUN-10")
@pytest.mark.parametrize(("route", "check"), [("agent", ""), ("", "true"), ("agent", "true")])
async def test_a_message_with_a_route_or_a_check_is_a_turn_of_its_own(
    tmp_path: Path, route: str, check: str
) -> None:
    script = [{"when": "add a test", "text": "Added."}, *answers()]
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue(UNPAUSED)) as talk:
        await say_while_it_plans(talk, SendMessage(text="add a test", route=route, check=check))
        await talk.until(TurnFinished)
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert [event.pipeline for event in talk.all(RunStarted)] == ["report", "agent"]
        assert not any(event.steering for event in talk.all(UserMessage))
        assert bool(talk.all(CheckFinished)) == bool(check)


@pytest.mark.promise("RUN-10")
async def test_words_that_no_stage_to_come_can_use_are_a_turn_of_their_own(tmp_path: Path) -> None:
    last_is_code = Pipeline("report", stages=(*UNPAUSED.stages[:1], Stage("count", "code", step="gather")))
    script = [{"when": "and now?", "text": "Now this."}, *answers()]
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue(last_is_code)) as talk:
        await say_while_it_plans(talk, SendMessage(text="and now?"))
        await talk.until(TurnFinished)
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert [event.steering for event in talk.all(UserMessage)] == [False, False]
        assert "and now?" in words(talk.requests[-1])


@pytest.mark.promise("RUN-10")
async def test_a_check_is_no_word_to_a_paused_run(tmp_path: Path) -> None:
    async with conversation(tmp_path, answers(), mode="edit", catalogue=catalogue()) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        await talk.send(SendMessage(text="1", check="false"))
        done = await talk.until(TurnFinished)
        assert done.reason == "failed"
        assert "Answer without `--check`" in done.detail
        assert not talk.all(RunResumed)
        assert (await talk.turn("1")).reason == "answered"


@pytest.mark.promise("RUN-4")
async def test_an_agent_that_is_called_by_name_is_no_word_to_the_run_of_another(tmp_path: Path) -> None:
    agent(tmp_path)
    script = [{"when": "weather", "text": '{"topics": ["weather"]}'}, *answers()]
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue(), trust=True) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        assert (await talk.turn("@small what is the weather?")).reason == "waiting"
        assert len(talk.all(BreakoutPending)) == 1
        assert not talk.all(RunResumed)
        assert (await talk.turn("yes")).reason == "answered"
        assert [event.pipeline for event in talk.all(RunStarted)] == ["report", "small"]


@pytest.mark.promise("CHAT-7")
async def test_what_a_model_proposed_stays_its_words_when_a_run_is_left_for_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nobody knows\n")
    script = [{"when": "explain", "text": "So."}, *answers()]
    async with conversation(tmp_path, script, mode="edit", catalogue=catalogue()) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        await talk.send(SendMessage(text="Something else: explain @notes.txt", suggested=True))
        await talk.until(TurnFinished)
        await talk.turn("yes")
        assert len(talk.all(RunBrokenOff)) == 1
        assert talk.all(UserMessage)[-1].suggested
        assert "nobody knows" not in talk.all(UserMessage)[-1].attached
