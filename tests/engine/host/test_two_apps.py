"""Two applications on one session: both see the same, either can speak, and one takes over from the other."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.protocol.commands import AnswerApproval, Cancel
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import (
    Answered,
    ApprovalAsked,
    Delta,
    Recorded,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from tests.engine.conversation import DEADLINE, Conversation, call, conversation, eventually, run

pytestmark = pytest.mark.anyio


@pytest.mark.promise("ENG-23")
async def test_second_follows_live_with_the_words_as_they_stream(tmp_path: Path) -> None:
    answers = [{"text": "one two three", "thinking": "well"}]
    async with conversation(tmp_path, answers) as first:
        async with conversation(tmp_path, answers, session=first.id) as second:
            first.held.hold(0, 3)
            await second.say("count")
            await first.held.reached(0, 3)
            await second.until(Delta, lambda delta: "two" in delta.text)
            assert not second.all(Answered)
            assert not second.app.is_holder(first.id)
            first.held.let_go(0, 3)
            await second.until(TurnFinished)
            await first.until(TurnFinished)
        assert [one.event for one in first.seen] == [one.event for one in second.seen]
        assert len(first.requests) == 1
        assert not second.requests
    for kind, text in (("text", "one two three"), ("thinking", "well")):
        shown = ""
        for delta in (each for each in second.deltas if each.kind == kind):
            assert delta.offset == len(shown)
            shown += delta.text
        assert shown
        assert text.startswith(shown.strip())


@pytest.mark.promise("ENG-23")
async def test_approval_and_cancel_come_from_the_second(tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = [run("echo x >> made"), {"text": "one two"}]
    async with (
        conversation(tmp_path, answers) as first,
        conversation(tmp_path, answers, session=first.id) as second,
    ):
        first.held.hold(1, 1)
        await first.say("add")
        asked = await second.until(ApprovalAsked)
        await second.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
        await first.send(AnswerApproval(approval_id=asked.approval_id, decision="reject"))
        await first.held.reached(1, 1)
        await second.send(Cancel())
        for talk in (first, second):
            assert (await talk.until(TurnFinished)).reason == "cancelled"
            assert talk.all(Answered)[-1].text == "one "
    assert (tmp_path / "made").read_text() == "x\n"


@pytest.mark.promise("ENG-23")
async def test_second_takes_over_when_the_first_closes(tmp_path: Path) -> None:
    answers = [{"text": "one"}, {"text": "two"}]
    async with conversation(tmp_path, answers) as first:
        await first.turn("first")
        async with conversation(tmp_path, answers, session=first.id) as second:
            await second.until(TurnFinished)
            assert (first.app.is_holder(first.id), second.app.is_holder(first.id)) == (True, False)
            first.app.detach(first.id)
            await eventually(lambda: second.app.is_holder(first.id))
            assert (await second.turn("second")).reason == "answered"
            assert len(second.requests) == 1


@pytest.mark.promise("ENG-23")
async def test_approval_that_waits_goes_over_to_the_second(tmp_path: Path) -> None:
    answers = [run("echo x >> made"), {"text": "done"}]
    async with conversation(tmp_path, answers) as first:
        await first.say("add")
        asked = await first.until(ApprovalAsked)
        async with conversation(tmp_path, answers, session=first.id) as second:
            first.app.detach(first.id)
            await eventually(lambda: second.app.is_holder(first.id))
            await second.send(AnswerApproval(approval_id=asked.approval_id, decision="once"))
            assert (await second.until(TurnFinished)).reason == "answered"
            assert len(second.all(ApprovalAsked)) == len(second.all(ToolStarted)) == 1
    assert (tmp_path / "made").read_text() == "x\n"


@pytest.mark.promise("ENG-23")
async def test_messages_from_both_sides_all_become_part_of_the_conversation(tmp_path: Path) -> None:
    answers = [{"text": "yes", "when": "from"}]
    async with (
        conversation(tmp_path, answers) as first,
        conversation(tmp_path, answers, session=first.id) as second,
    ):
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(first.say, f"from first {number};")
                tasks.start_soon(second.say, f"from second {number};")
        said: list[str] = []
        while len(said) < 20:
            said.append((await second.until(UserMessage)).text)
        await second.until(TurnFinished)
        assert len(set(said)) == 20
        assert [text for text in said if "first" in text] == [f"from first {number};" for number in range(10)]


@pytest.mark.promise("ENG-21")
async def test_followers_from_anywhere_get_every_event_once_while_a_turn_runs(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    answers = [*[call("read", path="a", start=number + 1) for number in range(20)], {"text": "done"}]
    gathered: dict[tuple[str, int], list[Recorded]] = {}

    async def follow(talk: Conversation, name: str, after: int) -> None:
        found = gathered[name, after] = []
        with anyio.fail_after(DEADLINE):
            async for item in talk.app.follow(talk.id, after):
                if isinstance(item, Recorded):
                    found.append(item)
                    if isinstance(item.event, TurnFinished):
                        break

    async with conversation(tmp_path, answers) as talk:
        await talk.say("read")
        await talk.until(TurnStarted)
        async with (
            conversation(tmp_path, answers, session=talk.id) as other,
            anyio.create_task_group() as tasks,
        ):
            for after in (0, 1, 2, 3):
                tasks.start_soon(follow, talk, "holder", after)
                tasks.start_soon(follow, other, "other", after)
        last = talk.app.last_seq(talk.id)
    for (_, after), found in gathered.items():
        assert [one.seq for one in found] == list(range(after + 1, last + 1))


@pytest.mark.promise("ENG-21")
async def test_follower_may_take_its_time_over_a_word(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one two", "thinking": "well"}]) as talk:
        talk.held.hold(0, 2)
        await talk.say("count")
        await talk.held.reached(0, 2)
        await talk.until(Delta)
        talk.held.let_go(0, 2)
        await eventually(lambda: talk.app.state(talk.id).turn is None)
        await talk.until(TurnFinished)
    assert talk.all(Answered)[0].text == "one two"


@pytest.mark.promise("ENG-21")
async def test_output_of_commands_whose_calls_have_the_same_id_is_shown_from_its_beginning(
    tmp_path: Path,
) -> None:
    same: list[dict[str, Any]] = [
        {"calls": [{"id": "call_0", "name": "run", "arguments": {"command": f"sh say.sh {word}"}}]}
        for word in ("first", "second")
    ]
    (tmp_path / "say.sh").write_text("echo $1; until [ -e $1 ]; do sleep 0.01; done\n")
    async with conversation(tmp_path, [*same, {"text": "done"}], mode="auto", allow=("sh",)) as talk:
        await talk.say("say")
        for word in ("first", "second"):
            delta = await talk.until(Delta, lambda delta: delta.kind == "output")
            assert (delta.offset, delta.text) == (0, f"{word}\n")
            (tmp_path / word).touch()
        await talk.until(TurnFinished)


async def test_follower_that_starts_beyond_the_end_or_at_no_session_is_told_so(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one"}]) as first:
        await first.turn("hi")
    async with conversation(tmp_path, [{"text": "one"}]) as talk:
        for session_id, after in ((first.id, 999), ("s_unknown", 0)):
            with pytest.raises(UsageProblem), anyio.fail_after(DEADLINE):
                await anext(talk.app.follow(session_id, after))
        assert not list(talk.app.log.folder.glob("*damaged*"))
