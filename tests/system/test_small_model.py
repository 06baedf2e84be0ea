"""The whole program on a real small model: what it shows, what it has ready, what a kill leaves behind."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from handrail.config.files import try_lock
from handrail.models.embedded.model_files import SMOLLM2
from handrail.models.embedded.server_files import RunningServer, ServerFiles
from handrail.models.embedded.server_process import ServerProcess
from handrail.protocol.events import Answered, TurnFinished
from handrail.protocol.values import to_json
from tests.engine.conversation import Conversation, conversation
from tests.interfaces.cli.program import command, environment, terminal
from tests.processes import running as processes

pytestmark = pytest.mark.anyio
DEADLINE = 90.0
ATTEMPTS = 10
MODEL = f"embedded/{SMOLLM2.model}"
BRIEF = "[limits]\nmax_output_tokens = 30\nsteps = 1\n"
LONG_TASK = "Say hello. " * 400
"""So long that the model is certainly at it when the kill comes."""


@pytest.fixture
async def child(models: Path) -> AsyncIterator[ServerFiles]:
    """What is known of this test's child, which is stopped at the end."""
    using = ServerProcess(SMOLLM2, models / SMOLLM2.name, models)
    yield using.files
    await using.stop()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real model on a busy machine takes its time."""
    monkeypatch.setattr("tests.engine.conversation.DEADLINE", DEADLINE)


def settings(text: str) -> None:
    Path(os.environ["HANDRAIL_HOME"], "config.toml").write_text(text)


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE):
        while not holds():
            await anyio.sleep(0.02)


def answering(at: RunningServer) -> bool:
    """Whether the child is at work on a request."""
    headers = {"authorization": f"Bearer {at.key}"}
    slots = httpx2.get(f"{at.url}/slots", headers=headers, timeout=DEADLINE).json()
    return bool(slots[0]["is_processing"])


def run(workspace: Path, words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command("run", words, "--json", "--model", MODEL),
        cwd=workspace,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def events(process: "subprocess.Popen[bytes]") -> Iterator[dict[str, Any]]:
    said, complaints = process.communicate(timeout=DEADLINE)
    assert b"Traceback" not in complaints, complaints.decode()
    return (json.loads(line) for line in said.splitlines())


def answers(process: "subprocess.Popen[bytes]") -> list[dict[str, Any]]:
    return [event for event in events(process) if event["type"] == "answered"]


async def turn(talk: Conversation, words: str) -> Answered:
    await talk.say(words)
    answered = await talk.until(Answered)
    await talk.until(TurnFinished)
    return answered


def kill(child: ServerFiles) -> None:
    for pid in processes(str(child.folder)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def killed_in_the_load(child: ServerFiles, workspace: Path) -> list[str]:
    """What the program tells of it; one that has loaded before the kill came answers, and is not counted."""
    for _ in range(ATTEMPTS):
        process = run(workspace, "Say hello.")
        await until(child.is_running)
        kill(child)
        told = [event.get("detail") or event.get("message", "") for event in events(process)]
        if process.returncode == 1:
            return told
        kill(child)
        await until(lambda: not child.is_running())
    raise AssertionError("no kill came in the load")


@pytest.mark.promise("EMB-15")
async def test_how_far_the_model_is_can_be_followed_and_is_not_in_the_log(
    child: ServerFiles, tmp_path: Path
) -> None:
    async with conversation(tmp_path, None, settings=BRIEF, model=MODEL, answerable=False) as talk:
        await turn(talk, "Say hello. " * 150)
        words = [delta.text for delta in talk.deltas if delta.kind == "progress"]
        assert f"loading {SMOLLM2.model}" in words
        assert any(text.startswith("reading the prompt  128/") for text in words)
        assert words[-1] == "answering"
        stored = "".join(to_json(one.event) for one in talk.seen)
        assert "reading the prompt" not in stored
        assert talk.app.log.partials(f"session:{talk.id}") == []


@pytest.mark.promise("EMB-16")
async def test_what_was_read_while_the_user_typed_is_not_read_again(
    child: ServerFiles, tmp_path: Path
) -> None:
    async with conversation(tmp_path, None, settings=BRIEF, model=MODEL, answerable=False) as talk:
        before = talk.app.last_seq(talk.id)
        await talk.app.turn_factory.warm(None)
        assert talk.app.last_seq(talk.id) == before
        first = await turn(talk, "Say hello.")
        assert first.usage.cache_read_tokens > 100
        second = await turn(talk, "And again.")
        third = await turn(talk, "And again.")
        for earlier, later in ((first, second), (second, third)):
            assert later.usage.cache_read_tokens > earlier.usage.input_tokens - 10


@pytest.mark.promise("EMB-16")
async def test_a_message_while_the_model_gets_ready_is_answered_and_nothing_else_is_on_record(
    child: ServerFiles, tmp_path: Path
) -> None:
    async with conversation(tmp_path, None, settings=BRIEF, model=MODEL, answerable=False) as talk:
        talk.app.warm()
        await until(child.is_running)
        await turn(talk, "Say hello.")
        assert talk.types.count("request_started") == 1
        assert "request_failed" not in talk.types


@pytest.mark.promise("EMB-16")
async def test_who_leaves_at_once_leaves_nobody_waiting_for_the_model(
    child: ServerFiles, tmp_path: Path
) -> None:
    with terminal("--model", MODEL, cwd=tmp_path) as talk:
        talk.expect("> ")
        talk.type("\x04")
        assert await anyio.to_thread.run_sync(talk.end) == 0
        assert "Traceback" not in talk.text
    if child.clients_lock.exists():
        alone = try_lock(child.clients_lock)
        assert alone is not None, "the child has a client that is not there any more"
        alone.release()


@pytest.mark.promise("EMB-17")
async def test_killed_in_an_answer_the_next_start_answers_from_the_same_child(
    child: ServerFiles, tmp_path: Path
) -> None:
    settings(BRIEF)
    process = run(tmp_path, LONG_TASK)
    await until(lambda: child.running() is not None)
    before = child.running()
    assert before is not None
    await until(lambda: answering(before))
    process.kill()
    process.communicate(timeout=DEADLINE)
    await until(lambda: not answering(before))
    (answer,) = answers(run(tmp_path, "Say hello."))
    assert answer["end"] in ("stop", "length", "tool_calls")
    assert child.running() == before


@pytest.mark.promise("EMB-17")
async def test_when_the_child_is_killed_in_an_answer_the_question_is_asked_again(
    child: ServerFiles, tmp_path: Path
) -> None:
    settings(BRIEF)
    process = run(tmp_path, LONG_TASK)
    await until(lambda: child.running() is not None)
    before = child.running()
    assert before is not None
    await until(lambda: answering(before))
    os.kill(before.pid, signal.SIGKILL)
    assert answers(process)
    after = child.running()
    assert after is not None
    assert after.pid != before.pid


@pytest.mark.promise("EMB-17")
async def test_when_the_child_is_killed_in_the_load_that_is_told_and_the_next_start_answers(
    child: ServerFiles, tmp_path: Path
) -> None:
    settings(BRIEF)
    told = await killed_in_the_load(child, tmp_path)
    assert any(str(child.log) in text for text in told)
    assert answers(run(tmp_path, "Say hello."))
