"""Compaction happens by itself, keeps the goal, can be undone, and keeps every request within the window."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.context.token_budget import entry_tokens, fixed_tokens
from handrail.models.model import AssistantTurn, Request, ToolResult, UserTurn
from handrail.protocol.commands import Compact, UndoCompaction
from handrail.protocol.events import Compacted, CompactionUndone, TurnFinished
from handrail.sessions.transcript import AssistantEntry, ToolResultEntry, UserEntry
from tests.engine.conversation import call, conversation, words

pytestmark = pytest.mark.anyio

GOAL = "Make the totals of the cart right, with tests."


def tokens(request: Request) -> int:
    """Our own estimate of what a request fills."""
    total = fixed_tokens(request.system, request.tools)
    for message in request.messages:
        match message:
            case UserTurn(text):
                total += entry_tokens(UserEntry(0, text))
            case AssistantTurn(text, called):
                total += entry_tokens(AssistantEntry(0, text, "m", called))
            case ToolResult() as result:
                total += entry_tokens(ToolResultEntry(0, "c", result.tool, result.content, is_error=False))
    return total


def assert_well_formed(request: Request) -> None:
    """Every result follows its call, every call has its result, and the user speaks first."""
    assert isinstance(request.messages[0], UserTurn)
    wanted: list[str] = []
    for message in request.messages:
        match message:
            case ToolResult() as result:
                assert wanted.pop(0) == result.call_id
            case AssistantTurn(calls=made):
                assert not wanted
                wanted = [each.id for each in made]
            case _:
                assert not wanted
    assert not wanted


@pytest.mark.promise("ENG-18")
async def test_full_window_is_compacted_unasked_and_the_goal_is_kept(tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = [{"text": f"answer {number} " + "word " * 300} for number in range(12)]
    async with conversation(tmp_path, answers, window=8_000) as talk:
        await talk.turn(GOAL)
        for number in range(11):
            assert (await talk.turn(f"message {number} " + "more " * 100)).reason == "answered"
        assert talk.all(Compacted)
    assert GOAL in words(talk.requests[-1])
    assert "message 10" in words(talk.requests[-1])
    assert all(tokens(request) < 8_000 for request in talk.requests)
    for request in talk.requests:
        assert_well_formed(request)


@pytest.mark.promise("ENG-19")
async def test_undone_compaction_shows_the_model_all_again(tmp_path: Path) -> None:
    answers = [{"text": f"answer {number}"} for number in range(5)]
    async with conversation(tmp_path, answers) as talk:
        for number in range(3):
            await talk.turn(f"message {number}")
        await talk.send(Compact())
        await talk.until(Compacted)
        await talk.turn("short")
        assert len(talk.requests[-1].messages) < len(talk.requests[-2].messages)
        await talk.send(UndoCompaction())
        await talk.until(CompactionUndone)
        await talk.turn("full again")
        before, after = talk.requests[2], talk.requests[-1]
        assert after.messages[: len(before.messages)] == before.messages
        assert "short" in words(after)
        await talk.send(UndoCompaction())
        await talk.send(Compact())
        await talk.until(Compacted)
    assert len(talk.all(CompactionUndone)) == 1


@pytest.mark.promise("ENG-19")
async def test_undoing_says_it_only_as_often_as_it_does_it(tmp_path: Path) -> None:
    answers = [{"text": f"answer {number}"} for number in range(30)]
    async with conversation(tmp_path, answers) as talk:
        await talk.turn(GOAL)
        for number in range(8):
            await talk.turn(f"message {number}")
            await talk.turn(f"and {number}")
            await talk.send(Compact())
            await talk.until(Compacted)
        for _ in range(10):
            await talk.send(UndoCompaction())
        await talk.turn("last")
        undone = talk.all(CompactionUndone)
        assert len({each.compaction_id for each in undone}) == len(undone)
        assert {each.compaction_id for each in undone} < {each.compaction_id for each in talk.all(Compacted)}


@pytest.mark.promise("ENG-18")
async def test_three_hundred_turns_fit_a_small_window_and_a_restart_shows_the_model_the_same(
    tmp_path: Path,
) -> None:
    window = 4_000
    for number in range(5):
        (tmp_path / f"file{number}").write_text(f"line of file {number}\n" * 40)
    answers: list[dict[str, Any]] = [
        {"text": "I saw it. " + "It is long. " * 20, "when": "line of file"},
        {"text": "It is not there.", "when": "file_missing"},
        *[call("read", path=f"file{number}") | {"when": f"read file{number}"} for number in range(6)],
        {"text": "Understood. " + "Indeed. " * 60, "when": ""},
    ]
    async with conversation(tmp_path, answers, window=window) as talk:
        await talk.turn(GOAL + " " + "Mind the rounding. " * 60)
        for number in range(299):
            text = f"read file{number % 6}" if number % 3 == 0 else f"message {number} " + "blah " * 30
            assert (await talk.turn(text)).reason == "answered"
        state = talk.app.state(talk.id)
        assert state.turns == 300
        last = talk.requests[-1]
    assert max(tokens(request) for request in talk.requests) <= window - 1_000
    for request in talk.requests:
        assert GOAL in words(request)
        assert_well_formed(request)
    async with conversation(tmp_path, answers, window=window, session=talk.id) as again:
        await again.until(TurnFinished)
        assert again.app.state(talk.id) == state
        await again.say("and now?")
        await again.until(
            TurnFinished, lambda one: one.turn_id not in {e.turn_id for e in talk.all(TurnFinished)}
        )
    assert words(last).splitlines()[-1] in words(again.requests[-1])
    assert tokens(again.requests[-1]) <= window - 1_000


@pytest.mark.promise("ENG-18")
async def test_many_todos_failures_and_changed_files_fit_a_small_window_too(tmp_path: Path) -> None:
    window = 6_000
    todos = [{"text": f"todo {number}: " + "mind the details " * 12} for number in range(20)]
    writes = [call("write", path=f"made{number}.txt", text="x\n") for number in range(40)]
    answers: list[dict[str, Any]] = [
        call("todos", todos=todos) | {"when": GOAL},
        *[each | {"when": f"write {number};"} for number, each in enumerate(writes)],
        call("read", path="a/missing/file/with/a/long/name.txt") | {"when": "read"},
        {"text": "Understood. " + "Indeed. " * 40, "when": ""},
    ]
    async with conversation(tmp_path, answers, window=window, mode="edit") as talk:
        await talk.turn(GOAL)
        for number in range(40):
            assert (await talk.turn(f"write {number};")).reason == "answered"
            assert (await talk.turn("read " + "what is there " * 20)).reason == "answered"
    assert (tmp_path / "made39.txt").exists()
    assert len(talk.all(Compacted)) > 3
    assert max(tokens(request) for request in talk.requests) <= window - 1_500
    last = words(talk.requests[-1])
    assert "todo 0" in last
    assert "made39.txt [hash:" in last


class Walked(list[Any]):
    """A transcript that counts how often it is walked."""

    walks = 0

    def __iter__(self) -> Iterator[Any]:
        self.walks += 1
        return super().__iter__()


async def test_a_request_walks_the_transcript_twice(tmp_path: Path) -> None:
    async with conversation(tmp_path, [{"text": "one"}, call("list"), {"text": "two"}]) as talk:
        await talk.turn("First")
        attachment = talk.app._host.get(talk.id)
        assert attachment
        session = attachment.session
        walked = Walked(session.transcript)
        session._transcript = walked
        await talk.turn("List the files")
        assert session.transcript is walked
    requests = 2
    assert walked.walks <= 2 * requests + 2, (
        "besides requests, a turn looks once for its words and its answer"
    )
