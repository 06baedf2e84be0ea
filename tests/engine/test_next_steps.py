"""What a turn of the tool loop offers next: the model's steps, else those that follow from what was done."""

import os
from pathlib import Path

import pytest

from handrail.config.places import find_places
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import HookSpoke, NextStepsOffered, TurnFinished
from handrail.protocol.values import CONTINUE_INPUT, NextStep
from tests.engine.conversation import Conversation, call, calls, conversation, run
from tests.tools.hook_programs import program, section

pytestmark = [pytest.mark.anyio, pytest.mark.promise("NEXT-1")]
WRITE = call("write", path="a", text="x\n")


async def work(talk: Conversation) -> TurnFinished:
    await talk.send(SendMessage(text="go", route="agent"))
    return await talk.until(TurnFinished)


def inputs(finished: TurnFinished) -> list[str]:
    return [step.input for step in finished.next_steps]


async def test_next_steps_of_the_model_end_the_turn_without_another_request(tmp_path: Path) -> None:
    offer = call("next_steps", steps=["Test  it", "/commit", "three", "four", "Test it"])
    async with conversation(
        tmp_path, [WRITE, {"text": "Written.", **offer}, {"text": "more"}], mode="edit"
    ) as talk:
        finished = await work(talk)
        assert finished.next_steps == tuple(NextStep(each, each) for each in ("Test it", "/commit", "three"))
        assert (finished.reason, finished.offered_by) == ("answered", "model")
        assert len(talk.requests) == 2
        finished = await work(talk)
        assert inputs(finished) == [], "they belong to their turn"


async def test_offering_alone_is_no_answer(tmp_path: Path) -> None:
    offer = call("next_steps", steps=["Test it"])
    script = [offer, {"text": "Hello.", **calls(offer, call("list", path="."))}, {"text": "The end."}]
    async with conversation(tmp_path, script) as talk:
        assert inputs(await work(talk)) == ["Test it"]
        assert len(talk.requests) == 3


async def test_without_them_code_offers_what_follows_from_the_changes(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    async with conversation(tmp_path, [WRITE, {"text": "Written."}], mode="edit") as talk:
        finished = await work(talk)
        assert [step.label for step in finished.next_steps] == ["Run the tests", "Show the diff", "Commit"]
        assert finished.offered_by == "handrail"
        assert not talk.all(NextStepsOffered)


async def test_tests_that_ran_and_a_missing_repository_are_not_offered(tmp_path: Path) -> None:
    async with conversation(tmp_path, [WRITE, run("cat a"), {"text": "Written."}], mode="auto") as talk:
        assert inputs(await work(talk)) == ["/diff"]


async def test_an_edit_after_the_tests_offers_them_again(tmp_path: Path) -> None:
    again = call("write", path="b", text="y\n")
    async with conversation(
        tmp_path, [WRITE, run("cat a"), again, {"text": "Written."}], mode="auto"
    ) as talk:
        assert [step.label for step in (await work(talk)).next_steps] == ["Run the tests", "Show the diff"]


async def test_open_todos_come_first(tmp_path: Path) -> None:
    script = [call("todos", todos=[{"text": "one"}]), WRITE, {"text": "Written."}]
    async with conversation(tmp_path, script, mode="edit") as talk:
        assert inputs(await work(talk))[0] == CONTINUE_INPUT


async def test_a_turn_that_changed_nothing_or_failed_offers_nothing(tmp_path: Path) -> None:
    failing = {"error": {"kind": "give_up", "message": "no"}}
    async with conversation(tmp_path, [{"text": "Nothing to do."}, WRITE, failing], mode="edit") as talk:
        assert (await work(talk)).next_steps == ()
        finished = await work(talk)
        assert (finished.reason, finished.next_steps) == ("failed", ())


async def test_a_hook_that_demands_more_is_heard_after_next_steps_too(tmp_path: Path) -> None:
    words = program(
        find_places(os.environ).settings.parent, "if not asked['demands']: say(demand='once more')"
    )
    offered = {"text": "Written.", **call("next_steps", steps=["Test it"])}
    script = [offered, {"text": "Once more."}]
    async with conversation(tmp_path, script, settings=section("before_end", words)) as talk:
        assert inputs(await work(talk)) == ["Test it"]
        assert [event.did for event in talk.all(HookSpoke)] == ["demanded"]
        assert len(talk.requests) == 2
