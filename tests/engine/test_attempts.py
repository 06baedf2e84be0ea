"""A check decides whether a turn is done; fresh answers start from the same files."""

from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.commands import SelectIntent, SendMessage
from handrail.protocol.events import AttemptStarted, CheckFinished, TurnFinished
from handrail.sessions.session import Session
from tests.engine.conversation import conversation

pytestmark = pytest.mark.anyio

CHECK = "grep -q right answer.txt"


def write(text: str, path: str = "answer.txt") -> dict[str, Any]:
    return {"calls": [{"name": "write", "arguments": {"path": path, "text": f"{text}\n"}}]}


@pytest.mark.promise("ENG-24")
async def test_first_answer_that_passes_is_kept_and_nothing_of_those_before(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("old\n")
    script = [
        {"when": "tried and undone", **write("right")},
        {"when": "fails now", "calls": write("wrong")["calls"] + write("x", "extra/new.txt")["calls"]},
        {"when": "new.txt", "text": "done"},
        {"when": "answer.txt", "text": "done"},
    ]
    async with conversation(tmp_path, script, mode="edit") as talk:
        await talk.send(SendMessage(text="make @answer.txt right", check=CHECK, attempts=3))
        finished = await talk.until(TurnFinished)
        assert finished.reason == "answered"
        assert [check.passed for check in talk.all(CheckFinished)] == [False, False, True]
        assert [start.temperature for start in talk.all(AttemptStarted)] == [0.0, 0.45]
        assert (tmp_path / "answer.txt").read_text() == "right\n"
        assert not (tmp_path / "extra").exists()


@pytest.mark.promise("ENG-24")
async def test_when_no_answer_passes_the_files_are_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("old\r\nold\r\n")
    (tmp_path / "answer.txt").chmod(0o640)
    before = (tmp_path / "answer.txt").read_bytes()
    script = [
        {"when": "fails now", "calls": [{"name": "read", "arguments": {"path": "answer.txt"}}]},
        {"when": "old", **write("wrong")},
        {"when": "answer.txt", "text": "done"},
    ]
    async with conversation(tmp_path, script, mode="edit") as talk:
        await talk.send(SendMessage(text="make it right", check=CHECK, attempts=2))
        finished = await talk.until(TurnFinished)
    assert finished.reason == "unverified"
    assert "as they were" in finished.detail
    assert (tmp_path / "answer.txt").read_bytes() == before
    assert (tmp_path / "answer.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.promise("ENG-24")
async def test_what_somebody_else_changed_meanwhile_is_not_taken_back(tmp_path: Path) -> None:
    script = [{"when": "fails now", **write("wrong")}, {"when": "answer.txt", "text": "done"}]
    async with conversation(tmp_path, script, mode="edit") as talk:
        talk.held.hold(1, 0)
        await talk.send(SendMessage(text="x", check="grep -q right answer.txt"))
        await talk.held.reached(1, 0)
        (tmp_path / "answer.txt").write_text("by hand\n")
        talk.held.let_go(1, 0)
        finished = await talk.until(TurnFinished)
    assert finished.reason == "unverified"
    assert "left as they are: answer.txt" in finished.detail
    assert (tmp_path / "answer.txt").read_text() == "by hand\n"


@pytest.mark.promise("ENG-24")
async def test_what_commands_and_the_check_itself_changed_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("old\n")
    (tmp_path / "large.bin").write_bytes(b"x" * 2_000_000)
    script: list[dict[str, Any]] = [
        {"when": "fails now", "calls": [{"name": "run", "arguments": {"command": "sh wrong.sh"}}]},
        {"when": "changed while it ran", "text": "done"},
    ]
    (tmp_path / "wrong.sh").write_text("echo wrong > answer.txt; mkdir out; echo x > out/x; rm large.bin\n")
    check = "echo checked >> checks; sed -i s/old/older/ answer.txt; false"
    async with conversation(tmp_path, script, mode="auto", allow=("sh wrong.sh",)) as talk:
        await talk.send(SendMessage(text="x", check=check))
        finished = await talk.until(TurnFinished)
    assert "without a stored copy: large.bin" in finished.detail
    assert (tmp_path / "answer.txt").read_text() == "old\n"
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "checks").exists()


@pytest.mark.parametrize("last", ["wrong", "right"])
async def test_what_changed_while_the_check_ran_is_put_back_and_named(tmp_path: Path, last: str) -> None:
    (tmp_path / "answer.txt").write_text("old\n")
    (tmp_path / "notes.txt").write_text("mine\n")
    script = [
        {"when": "tried and undone", **write(last)},
        {"when": "fails now", **write("bad")},
        {"when": "answer.txt", "text": "done"},
    ]
    check = f"{CHECK} || {{ echo saved meanwhile >> notes.txt; false; }}"
    async with conversation(tmp_path, script, mode="edit") as talk:
        await talk.send(SendMessage(text="make @answer.txt right", check=check, attempts=2))
        finished = await talk.until(TurnFinished)
    assert finished.reason == ("answered" if last == "right" else "unverified")
    assert "while a command ran: notes.txt." in finished.detail
    assert (tmp_path / "notes.txt").read_text() == "mine\n"


async def test_a_folder_that_a_check_made_a_file_comes_back_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_text("x\n")
    script = [{"when": "fails now", **write("wrong")}, {"when": "answer.txt", "text": "done"}]
    check = "rm -r folder; echo file > folder; false"
    async with conversation(tmp_path, script, mode="edit") as talk:
        await talk.send(SendMessage(text="x", check=check))
        finished = await talk.until(TurnFinished)
    assert "as they were" in finished.detail
    assert (tmp_path / "folder" / "x").read_text() == "x\n"


async def test_a_fresh_answer_is_not_shown_the_ones_before(tmp_path: Path) -> None:
    script = [
        {"when": "tried and undone", "text": "second"},
        {"when": "fails now", "text": "first words"},
        {"when": "next", "text": "later"},
    ]
    async with conversation(tmp_path, script, mode="edit") as talk:
        await talk.send(SendMessage(text="make it right", check="false", attempts=2))
        await talk.until(TurnFinished)
        shown = str(talk.requests[-1].messages)
        assert "first words" not in shown
        assert "make it right" in shown
        loaded = Session(talk.app.log, talk.id).load()
        assert "first words" not in str(loaded.transcript)
        assert "second" in str(loaded.transcript)


@pytest.mark.parametrize("bound", [True, False])
async def test_after_the_same_failure_twice_a_lesson_is_offered_with_and_without_intents(
    tmp_path: Path, bound: bool
) -> None:
    if bound:
        (tmp_path / ".orchestration").mkdir()
        (tmp_path / ".orchestration/active_intents.yaml").write_text("- id: A\n  owned_scope: ['**']\n")
    (tmp_path / ".gitignore").write_text("rounds\n")
    check = "echo x >> rounds; echo it fails; test $(wc -l < rounds) -gt 3"
    script = [{"when": "it fails", **write("right")}, {"when": "answer.txt", "text": "done"}]
    async with conversation(tmp_path, script, mode="edit") as talk:
        if bound:
            await talk.send(SelectIntent(intent_id="A"))
        await talk.send(SendMessage(text="make it right", check=check, attempts=3))
        finished = await talk.until(TurnFinished)
    assert finished.reason == "answered"
    assert "record_lesson" in finished.detail
