"""Cancelling keeps what was done, marks what was cut, and leaves nothing running."""

from pathlib import Path

import pytest

from handrail.protocol.commands import AnswerApproval, Cancel, SendMessage
from handrail.protocol.events import (
    Answered,
    ApprovalAsked,
    Delta,
    RequestStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserMessage,
)
from handrail.protocol.values import to_json
from tests.engine.conversation import calls, conversation, eventually, run, words
from tests.processes import lasting, running

pytestmark = pytest.mark.anyio


@pytest.mark.promise("ENG-4")
async def test_cancel_keeps_the_words_so_far_and_tells_the_model_that_they_were_cut(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one two three"}, {"text": "yes"}]) as talk:
        talk.held.hold(0, 2)
        await talk.say("count")
        await talk.held.reached(0, 2)
        await talk.until(Delta, lambda delta: "two" in delta.text)
        await talk.send(Cancel())
        answered = await talk.until(Answered)
        assert (answered.text, answered.end) == ("one two ", "cancelled")
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        assert (await talk.turn("go on")).reason == "answered"
    shown = words(talk.requests[1])
    assert "one two" in shown
    assert "interrupted here" in shown
    assert "three" not in shown


@pytest.mark.promise("ENG-4")
async def test_cancel_before_any_word_is_told_to_the_model_too(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one"}, {"text": "yes"}]) as talk:
        talk.held.hold(0, 0)
        await talk.say("count")
        await talk.held.reached(0, 0)
        await talk.send(Cancel())
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        await talk.turn("go on")
    assert "interrupted here" in words(talk.requests[1])


@pytest.mark.promise("ENG-5")
async def test_cancel_stops_a_command_with_all_its_children(tmp_path: Path) -> None:
    child = lasting()
    answers = [run(f"sh long.sh {child}"), {"text": "yes"}]
    (tmp_path / "long.sh").write_text("sleep $1 & wait")
    async with conversation(tmp_path, answers, mode="auto", allow=("sh",)) as talk:
        await talk.say("wait")
        await talk.until(ToolStarted)
        await eventually(lambda: len(running(child)) == 2)
        await talk.send(Cancel())
        finished = await talk.until(ToolFinished)
        assert finished.status == "cancelled"
        assert finished.error
        assert finished.error.reason == "cancelled"
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        assert not running(child)
        assert (await talk.turn("go on")).reason == "answered"
    assert "Cancelled before it finished" in words(talk.requests[1])


async def test_cancelled_command_keeps_the_output_it_had(tmp_path: Path) -> None:
    (tmp_path / "long.sh").write_text("echo half way; sleep 600")
    async with conversation(tmp_path, [run("sh long.sh")], mode="auto", allow=("sh",)) as talk:
        await talk.say("wait")
        await talk.until(Delta, lambda delta: delta.kind == "output" and "half way" in delta.text)
        await talk.send(Cancel())
        assert "half way" in (await talk.until(ToolFinished)).content


@pytest.mark.promise("ENG-4")
async def test_cancel_while_an_approval_waits_ends_the_turn_and_the_call_never_runs(tmp_path: Path) -> None:
    answers = [calls(run("touch a"), run("touch b")), {"text": "yes"}]
    async with conversation(tmp_path, answers) as talk:
        await talk.say("make them")
        asked = await talk.until(ApprovalAsked)
        await talk.send(Cancel())
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        assert [each.status for each in talk.all(ToolFinished)] == ["cancelled", "cancelled"]
        assert not talk.app.state(talk.id).approvals
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        assert (await talk.turn("and now?")).reason == "answered"
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    assert not talk.all(ToolStarted)


@pytest.mark.promise("ENG-4")
async def test_cancel_sent_right_behind_the_message_cancels_it(tmp_path: Path) -> None:
    async with conversation(
        tmp_path, [run("touch a"), {"text": "yes"}], mode="auto", allow=("touch",)
    ) as talk:
        stream = f"session:{talk.id}"
        for command in (SendMessage(text="make it"), Cancel()):
            talk.app.log.put(stream, to_json(command))
        finished = await talk.until(TurnFinished)
        assert finished.reason == "cancelled"
        assert "You cancelled it" in finished.detail
        assert not talk.all(ToolStarted)
        assert not talk.all(RequestStarted)


@pytest.mark.promise("ENG-4")
async def test_cancel_right_after_a_restart_ends_the_waiting_turn_with_all_its_calls(tmp_path: Path) -> None:
    answers = [run("touch a"), {"text": "yes"}]
    async with conversation(tmp_path, answers) as first:
        await first.say("make it")
        await first.until(ApprovalAsked)
    async with conversation(tmp_path, answers) as talk:
        talk.app.log.put(f"session:{first.id}", to_json(Cancel()))
    async with conversation(tmp_path, answers, session=first.id) as talk:
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        assert [each.status for each in talk.all(ToolFinished)] == ["cancelled"]
        assert (await talk.turn("and now?")).reason == "answered"
    assert not (tmp_path / "a").exists()


async def test_cancel_when_nothing_runs_does_nothing(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one"}, {"text": "two"}]) as talk:
        await talk.send(Cancel())
        assert (await talk.turn("first")).reason == "answered"
        await talk.send(Cancel())
        assert (await talk.turn("second")).reason == "answered"
        assert "cancelled" not in str(talk.seen)


@pytest.mark.promise("ENG-6")
async def test_message_sent_after_a_cancel_is_not_swallowed_by_the_cancelled_turn(tmp_path: Path) -> None:
    answers = [{"text": "one two three"}, {"text": "yes"}]
    async with conversation(tmp_path, answers) as talk:
        talk.held.hold(0, 1)
        await talk.say("count")
        await talk.held.reached(0, 1)
        await talk.send(Cancel())
        await talk.say("something else")
        assert (await talk.until(TurnFinished)).reason == "cancelled"
        assert (await talk.until(TurnFinished)).reason == "answered"
    assert [message.steering for message in talk.all(UserMessage)] == [False, False]


@pytest.mark.promise("ENG-4")
async def test_closing_in_the_middle_of_an_answer_keeps_its_words(tmp_path: Path) -> None:
    answers = [{"text": "one two three"}, {"text": "yes"}]
    async with conversation(tmp_path, answers) as first:
        first.held.hold(0, 2)
        await first.say("count")
        await first.held.reached(0, 2)
    async with conversation(tmp_path, answers, session=first.id) as talk:
        finished = await talk.until(TurnFinished)
        assert finished.reason == "interrupted"
        assert talk.all(Answered)[0].text == "one two "
        assert (await talk.turn("go on")).reason == "answered"
    assert "interrupted here" in words(talk.requests[0])
