"""What the user is asked waits in the log: it survives a restart, and is answered once."""

from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import AnswerApproval, AnswerQuestion, Cancel
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from handrail.protocol.values import to_json
from tests.engine.conversation import Conversation, call, calls, conversation, run, words

pytestmark = pytest.mark.anyio

ADDS = "echo x >> made"


async def answer(talk: Conversation, decision: Any, note: str = "") -> ApprovalAsked:
    asked = await talk.until(ApprovalAsked)
    await talk.send(AnswerApproval(approval_id=asked.approval_id, decision=decision, note=note))
    return asked


@pytest.mark.promise("ENG-15")
async def test_approval_survives_a_restart_and_its_call_runs_once(tmp_path: Path) -> None:
    answers = [run(ADDS), {"text": "done"}]
    async with conversation(tmp_path, answers) as first:
        await first.say("add")
        asked = await first.until(ApprovalAsked)
    assert not (tmp_path / "made").exists()
    async with conversation(tmp_path, answers, session=first.id) as talk:
        pending = await talk.until(ApprovalAsked)
        assert pending == asked
        assert list(talk.app.state(first.id).approvals) == [asked.approval_id]
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        assert (await talk.until(TurnFinished)).reason == "answered"
    assert (tmp_path / "made").read_text() == "x\n"
    assert len(talk.all(TurnStarted)) == len(talk.all(ApprovalAsked)) == len(talk.all(ToolStarted)) == 1


@pytest.mark.promise("ENG-15")
async def test_approval_given_while_nobody_served_the_session_counts_and_is_not_asked_again(
    tmp_path: Path,
) -> None:
    answers = [run(ADDS), {"text": "done"}]
    async with conversation(tmp_path, answers) as first:
        await first.say("add")
        asked = await first.until(ApprovalAsked)
    async with conversation(tmp_path, answers) as other:
        word = AnswerApproval(approval_id=asked.approval_id, decision="once")
        other.app.log.put(f"session:{first.id}", to_json(word))
    async with conversation(tmp_path, answers, session=first.id) as talk:
        assert (await talk.until(TurnFinished)).reason == "answered"
    assert (tmp_path / "made").read_text() == "x\n"
    assert len(talk.all(ApprovalAsked)) == 1


@pytest.mark.promise("ENG-15")
async def test_file_changed_over_a_restart_is_not_overwritten_by_what_was_approved_before(
    tmp_path: Path,
) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("old\n")
    answers = [
        call("read", path="notes.txt"),
        call("write", path="notes.txt", text="new\n"),
        {"text": "done"},
    ]
    async with conversation(tmp_path, answers) as first:
        await first.say("write")
        asked = await first.until(ApprovalAsked)
    target.write_text("precious words of the user\n")
    async with conversation(tmp_path, answers, session=first.id) as talk:
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        finished = await talk.until(ToolFinished, lambda one: one.tool == "write")
        assert finished.status == "refused"
    assert target.read_text() == "precious words of the user\n"


@pytest.mark.promise("ENG-15")
async def test_call_that_would_now_do_something_else_is_asked_about_anew(tmp_path: Path) -> None:
    answers = [call("write", path="link/new.txt", text="new\n"), {"text": "done"}]
    link = tmp_path / "link"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    link.symlink_to("a")
    async with conversation(tmp_path, answers) as first:
        await first.say("write")
        before = await first.until(ApprovalAsked)
        assert before.summary == "a/new.txt"
    link.unlink()
    link.symlink_to("b")
    async with conversation(tmp_path, answers) as other:
        word = AnswerApproval(approval_id=before.approval_id, decision="once")
        other.app.log.put(f"session:{first.id}", to_json(word))
    async with conversation(tmp_path, answers, session=first.id) as talk:
        asked = await talk.until(ApprovalAsked, lambda one: one != before)
        assert asked.summary == "b/new.txt"
        assert not any((tmp_path / name / "new.txt").exists() for name in ("a", "b"))
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        assert (await talk.until(TurnFinished)).reason == "answered"
    assert (tmp_path / "b" / "new.txt").exists()
    assert not (tmp_path / "a" / "new.txt").exists()


@pytest.mark.promise("ENG-15")
async def test_question_survives_a_restart(tmp_path: Path) -> None:
    answers = [call("ask_user", question="Tabs or spaces?", options=["tabs", "spaces"]), {"text": "fine"}]
    async with conversation(tmp_path, answers) as first:
        await first.say("format it")
        asked = await first.until(QuestionAsked)
        assert asked.options == ("tabs", "spaces")
    async with conversation(tmp_path, answers, session=first.id) as talk:
        assert await talk.until(QuestionAsked) == asked
        await talk.send(AnswerQuestion(question_id=asked.question_id, answer="tabs, please"))
        assert (await talk.until(TurnFinished)).reason == "answered"
    assert "tabs, please" in words(talk.requests[-1])
    assert len(talk.all(QuestionAsked)) == len(talk.all(QuestionAnswered)) == 1


@pytest.mark.promise("ENG-15")
async def test_question_answered_while_nobody_served_the_session_is_not_asked_again(tmp_path: Path) -> None:
    answers = [call("ask_user", question="Tabs or spaces?"), {"text": "fine"}]
    async with conversation(tmp_path, answers) as first:
        await first.say("format it")
        asked = await first.until(QuestionAsked)
    async with conversation(tmp_path, answers) as other:
        word = AnswerQuestion(question_id=asked.question_id, answer="tabs")
        other.app.log.put(f"session:{first.id}", to_json(word))
    async with conversation(tmp_path, answers, session=first.id) as talk:
        assert (await talk.until(TurnFinished)).reason == "answered"
    assert len(talk.all(QuestionAsked)) == 1
    assert "tabs" in words(talk.requests[-1])


async def test_second_answer_to_an_approval_changes_nothing(tmp_path: Path) -> None:
    async with conversation(tmp_path, [run(ADDS), {"text": "done"}, {"text": "later"}]) as talk:
        await talk.say("add")
        asked = await answer(talk, "reject")
        await talk.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        await talk.send(AnswerApproval(approval_id="a_unknown", decision="always"))
        await talk.until(TurnFinished)
        await talk.turn("more")
    assert len(talk.all(ApprovalAnswered)) == 1
    assert not (tmp_path / "made").exists()


@pytest.mark.promise("ENG-16")
async def test_rejection_reaches_the_model_with_the_users_reason(tmp_path: Path) -> None:
    async with conversation(tmp_path, [run(ADDS), {"text": "as you wish"}]) as talk:
        await talk.say("add")
        await answer(talk, "reject", note="use the build script")
        assert (await talk.until(TurnFinished)).reason == "answered"
    (finished,) = talk.all(ToolFinished)
    assert finished.error
    assert finished.error.reason == "user_rejected"
    assert "use the build script" in words(talk.requests[1])
    assert not talk.all(ToolStarted)


@pytest.mark.promise("ENG-16")
async def test_always_holds_for_the_same_thing_and_for_no_other(tmp_path: Path) -> None:
    answers = [run(ADDS), run(ADDS), run(f"{ADDS}; echo"), {"text": "done"}]
    async with conversation(tmp_path, answers) as talk:
        await talk.say("add")
        await answer(talk, "always")
        other = await talk.until(ApprovalAsked)
        assert other.preview == f"{ADDS}; echo"
        assert (tmp_path / "made").read_text() == "x\nx\n"
        await talk.send(AnswerApproval(approval_id=other.approval_id, decision="reject"))
        await talk.until(TurnFinished)
    async with conversation(tmp_path, [*answers, run(ADDS), {"text": "done"}], session=talk.id) as again:
        await again.until(TurnFinished)
        assert (await again.turn("once more")).reason == "answered"
    assert len(again.all(ApprovalAsked)) == 2
    assert (tmp_path / "made").read_text() == "x\nx\nx\n"


@pytest.mark.promise("ENG-17")
async def test_with_nobody_to_ask_nothing_waits_and_nothing_is_done(tmp_path: Path) -> None:
    answers = [calls(run(ADDS), call("ask_user", question="May I?")), {"text": "could not"}]
    async with conversation(tmp_path, answers, answerable=False) as talk:
        assert (await talk.turn("add")).reason == "answered"
    reasons = [finished.error and finished.error.reason for finished in talk.all(ToolFinished)]
    assert reasons == ["nobody_to_ask", "nobody_to_ask"]
    assert not (tmp_path / "made").exists()
    assert not talk.all(ToolStarted)


@pytest.mark.promise("ENG-17")
async def test_with_nobody_to_ask_a_turn_left_waiting_by_another_does_not_wait(tmp_path: Path) -> None:
    answers = [run(ADDS), {"text": "could not"}]
    async with conversation(tmp_path, answers) as first:
        await first.say("add")
        await first.until(ApprovalAsked)
    async with conversation(tmp_path, answers, session=first.id, answerable=False) as talk:
        assert (await talk.until(TurnFinished)).reason == "answered"
        assert not talk.app.state(first.id).approvals
    assert not (tmp_path / "made").exists()


async def test_decision_about_one_call_does_not_hold_for_a_later_one_with_the_same_id(tmp_path: Path) -> None:
    same: list[dict[str, Any]] = [
        {"calls": [{"id": "call_0", "name": "run", "arguments": {"command": f"touch {name}; true"}}]}
        for name in ("first", "second")
    ]
    async with conversation(tmp_path, [*same, {"text": "done"}]) as talk:
        await talk.say("make")
        await answer(talk, "once")
        asked = await talk.until(ApprovalAsked)
        assert asked.preview == "touch second; true"
        assert (tmp_path / "first").exists()
        assert not (tmp_path / "second").exists()
        await talk.send(Cancel())
        await talk.until(TurnFinished)
    assert not (tmp_path / "second").exists()
