"""Clients that die, hang or lie in the middle of a session, and sessions that are not there."""

import fcntl
import struct
import termios
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp import schema
from acp.exceptions import RequestError
from acp.helpers import embedded_text_resource, resource_block

from tests.interfaces.acp.editor import DEADLINE, Editor, files, opened
from tests.interfaces.acp.raw_client import raw_client
from tests.interfaces.acp.test_session import call
from tests.interfaces.acp.test_unsaved import EDIT, READ, SAVED, UNSAVED, results
from tests.interfaces.cli.program import run, script
from tests.processes import gone, lasting, running

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    (made / "notes.txt").write_text(SAVED)
    return made


async def never(*_asked: Any) -> str:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.promise("ACP-13")
async def test_when_the_client_dies_the_agent_ends_and_its_session_can_go_on(
    tmp_path: Path, folder: Path
) -> None:
    word = lasting()
    model = script(tmp_path, {"calls": [call("run", command=f"sleep {word}")]}, {"text": "on after that"})
    with raw_client(folder, model, "--mode", "sandbox") as client:
        session = client.new()
        client.prompt(session, "wait")
        with anyio.fail_after(DEADLINE):
            while not running(word):
                await anyio.sleep(0.01)
        client.stdin.close()
        client.stdout.close()
        assert client.process.wait(DEADLINE) == 0
        assert await gone(word)
    again = Editor()
    async with opened(folder, model, "--mode", "sandbox", editor=again) as open_:
        await open_.load(session)
        assert "Interrupted: Handrail was closed; /continue goes on from there." in again.text_of()
        assert [known["status"] for known in again.calls().values()] == ["failed"]
        assert await open_.prompt(session, "/continue") == "end_turn"
        assert "on after that" in again.text_of()


@pytest.mark.promise("ACP-13")
async def test_a_client_that_no_longer_reads_does_not_keep_the_agent(tmp_path: Path, folder: Path) -> None:
    """The pipe is full when the client goes: the agent must not wait for room in it."""
    model = script(tmp_path, {"text": "many words " * 100_000})
    with raw_client(folder, model) as client:
        client.prompt(client.new(), "talk")
        with anyio.fail_after(DEADLINE):
            while waiting(client.stdout.fileno()) < 60_000:
                await anyio.sleep(0.01)
        client.stdin.close()
        assert client.process.wait(DEADLINE) == 0


def waiting(descriptor: int) -> int:
    """Bytes in a pipe that nobody has read."""
    (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    return int(count)


@pytest.mark.promise("ACP-13")
async def test_cancel_ends_a_turn_whose_permission_the_client_never_answers(
    tmp_path: Path, folder: Path
) -> None:
    model = script(tmp_path, {"calls": [call("write", path="b.txt", text="new\n")]}, {"text": "never"})
    editor = Editor(never)
    async with opened(folder, model, editor=editor) as open_, anyio.create_task_group() as tasks:
        session, stopped = await open_.new(), list[str]()

        async def prompt() -> None:
            stopped.append(await open_.prompt(session, "write it"))
            tasks.cancel_scope.cancel()

        tasks.start_soon(prompt)
        await editor.until(lambda: editor.asked)
        await open_.agent.cancel(session_id=session)
    assert stopped == ["cancelled"]
    assert not (folder / "b.txt").exists()


@pytest.mark.promise("ACP-14")
@pytest.mark.parametrize("answer", ["", "an option that was not offered"])
async def test_a_question_that_is_dismissed_is_a_no_and_the_turn_goes_on(
    tmp_path: Path, folder: Path, answer: str
) -> None:
    """Some editors answer `cancelled` when their dialog is closed: the turn must not wait for ever."""
    model = script(tmp_path, {"calls": [call("write", path="b.txt", text="new\n")]}, {"text": "as you wish"})

    async def decide(*_asked: Any) -> str:
        return answer

    editor = Editor(decide)
    async with opened(folder, model, editor=editor) as open_:
        assert await open_.prompt(await open_.new(), "write it") == "end_turn"
    assert "as you wish" in editor.text_of()
    assert not (folder / "b.txt").exists()


@pytest.mark.promise("ACP-14")
async def test_permission_once_always_and_reject(tmp_path: Path, folder: Path) -> None:
    model = script(
        tmp_path,
        {"calls": [call("run", command="touch one")]},
        {"calls": [call("run", command="touch two")]},
        {"calls": [call("run", command="touch two")]},
        {"calls": [call("run", command="touch three")]},
        {"text": "done"},
    )
    picked = {"touch one": "once", "touch two": "always", "touch three": "reject"}
    kinds: list[list[str]] = []

    async def decide(about: schema.ToolCallUpdate, options: list[schema.PermissionOption]) -> str:
        kinds.append([option.kind for option in options])
        return picked[about.title or ""]

    editor = Editor(decide)
    async with opened(folder, model, editor=editor) as open_:
        assert await open_.prompt(await open_.new(), "touch them") == "end_turn"
    assert [each.title for each in editor.asked] == list(picked), "the second `touch two` is not asked about"
    assert all({"allow_once", "allow_always", "reject_once"} == set(each) for each in kinds)
    assert sorted(path.name for path in folder.iterdir() if path.suffix == "") == ["one", "two"]
    assert [each["status"] for each in editor.calls().values()] == [*["completed"] * 3, "failed"]


@pytest.mark.promise("CRED-8")
async def test_a_secret_is_stored_in_a_terminal_and_never_typed_into_the_session(
    tmp_path: Path, folder: Path
) -> None:
    asked = {"name": "SHOP_TOKEN", "why": "to list the orders"}
    asks = {"name": "credential_prompt", "arguments": asked}
    model = script(tmp_path, {"calls": [asks]}, {"text": "Good."})

    async def decide(about: schema.ToolCallUpdate, _options: list[schema.PermissionOption]) -> str:
        assert "handrail credentials set SHOP_TOKEN" in str(about.content)
        stored = run("credentials", "set", "SHOP_TOKEN", cwd=folder, stdin="swordfish-0123456789\n")
        assert stored.returncode == 0, stored.stderr
        return "0"

    editor = Editor(decide)
    async with opened(folder, model, editor=editor) as open_:
        assert await open_.prompt(await open_.new(), "list the orders") == "end_turn"
    (known,) = editor.calls().values()
    assert known["content"][0]["content"]["text"] == "stored"
    assert "Good." in editor.text_of()


@pytest.mark.promise("ACP-6")
async def test_sessions_that_are_not_there_are_refused_with_what_to_do(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"text": "still here"})
    async with opened(folder, model) as open_:
        agent, cwd = open_.agent, str(folder)
        with pytest.raises(RequestError, match=r"There is no session 's_nope'.*session/list"):
            await open_.load("s_nope")
        with pytest.raises(RequestError, match="There is no session 's_nope'"):
            await agent.resume_session(session_id="s_nope", cwd=cwd, mcp_servers=[])
        with pytest.raises(RequestError, match="s_nope"):
            await agent.fork_session(session_id="s_nope", cwd=cwd, mcp_servers=[])
        with pytest.raises(RequestError, match="No session 's_nope' is open"):
            await open_.prompt("s_nope", "hello")
        with pytest.raises(RequestError, match="No session 's_nope' is open"):
            await agent.close_session(session_id="s_nope")
        with pytest.raises(RequestError, match="session"):
            await open_.load("../../etc/passwd")
        await open_.prompt(await open_.new(), "hello")
        assert "still here" in open_.editor.text_of()


@pytest.mark.promise("ACP-6")
async def test_a_huge_prompt_is_refused_or_shortened_and_the_next_one_works(
    tmp_path: Path, folder: Path
) -> None:
    model = script(tmp_path, {"text": "read it"}, {"text": "and the next"})
    async with opened(folder, model) as open_:
        session = await open_.new()
        huge = resource_block(embedded_text_resource("untitled:1", "word " * 1_000_000))
        with pytest.raises(RequestError, match="more than 400,000 characters"):
            await open_.prompt(session, "look", huge)
        await open_.prompt(session, "word " * 2_000_000)
        assert "your message is too long" in open_.editor.text_of()
        await open_.prompt(session, "and now?")
        assert "and the next" in open_.editor.text_of()


@pytest.mark.promise("ACP-4")
async def test_an_editor_that_fails_to_read_loses_no_text(tmp_path: Path, folder: Path) -> None:
    """The edit would be written over text that the editor has, and did not tell."""
    model = script(tmp_path, {"calls": [READ]}, {"calls": [EDIT]}, {"text": "done"})

    class Failing(Editor):
        def text(self, path: Path) -> str:
            if self.failing:
                raise RequestError.internal_error({"details": "the buffer is locked"})
            return super().text(path)

        failing = False

    async def decide(*_asked: Any) -> str:
        editor.buffers[folder / "notes.txt"] = UNSAVED
        editor.failing = True
        return "once"

    editor = Failing(decide)
    async with opened(folder, model, editor=editor, can=files()) as open_:
        await open_.prompt(await open_.new(), "change it")
        assert "could not read notes.txt" in results(open_)[1]
    assert editor.writes == []
    assert editor.buffers[folder / "notes.txt"] == UNSAVED


@pytest.mark.promise("ACP-4")
async def test_an_editor_whose_text_is_another_each_time_gets_no_edit(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"calls": [READ]}, {"calls": [EDIT]}, {"text": "done"})

    class Lying(Editor):
        def text(self, path: Path) -> str:
            return f"{super().text(path)}{len(self.reads)}\n"

    editor = Lying()
    async with opened(folder, model, "--mode", "edit", editor=editor, can=files()) as open_:
        await open_.prompt(await open_.new(), "change it")
        assert "is not the version that was shown" in results(open_)[1]
    assert editor.writes == []
    assert (folder / "notes.txt").read_text() == SAVED


@pytest.mark.promise("ACP-13")
async def test_a_session_that_is_loaded_again_runs_on_and_answers_its_prompt(
    tmp_path: Path, folder: Path
) -> None:
    model = script(tmp_path, {"calls": [call("write", path="b.txt", text="new\n")]}, {"text": "written"})

    async def decide(*_asked: Any) -> str:
        return await never() if len(editor.asked) == 1 else "once"

    editor = Editor(decide)
    async with opened(folder, model, editor=editor) as open_, anyio.create_task_group() as tasks:
        session, stopped = await open_.new(), list[str]()

        async def prompt() -> None:
            stopped.append(await open_.prompt(session, "write it"))

        tasks.start_soon(prompt)
        await editor.until(lambda: editor.asked)
        await open_.load(session)
        await editor.until(lambda: "written" in editor.text_of())
    assert stopped == ["end_turn"]
    assert (folder / "b.txt").read_text() == "new\n"
    assert "nterrupted" not in editor.text_of()


@pytest.mark.promise("ACP-13")
async def test_a_session_that_is_closed_answers_its_prompt(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"calls": [call("write", path="b.txt", text="new\n")]}, {"text": "never"})
    editor = Editor(never)
    async with opened(folder, model, editor=editor) as open_, anyio.create_task_group() as tasks:
        session, stopped = await open_.new(), list[str]()

        async def prompt() -> None:
            stopped.append(await open_.prompt(session, "write it"))

        tasks.start_soon(prompt)
        await editor.until(lambda: editor.asked)
        await open_.agent.close_session(session_id=session)
    assert stopped == ["cancelled"]
    assert not (folder / "b.txt").exists()


@pytest.mark.promise("ACP-12")
async def test_a_terminal_that_fails_is_released(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"calls": [call("run", command="echo shown")]}, {"text": "done"})

    class Failing(Editor):
        async def wait_for_terminal_exit(self, terminal_id: str, **_given: Any) -> Any:
            raise RequestError.internal_error({"details": "no such terminal"})

    editor = Failing()
    can = schema.ClientCapabilities(terminal=True)
    async with opened(folder, model, editor=editor, can=can) as open_:
        assert await open_.prompt(await open_.new(), "show it") == "end_turn"
        await editor.until(lambda: editor.released)
        assert editor.released == list(editor.terminals)
        (terminal,) = editor.terminals.values()
        await terminal.process.communicate()


@pytest.mark.promise("ACP-10")
async def test_what_comes_with_a_slash_command_belongs_to_it(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"text": "a first AGENTS.md"})
    async with opened(folder, model) as open_:
        session = await open_.new()
        selection = embedded_text_resource(f"{(folder / 'notes.txt').as_uri()}#L1:1", "selected words")
        await open_.prompt(session, "/init mind ", resource_block(selection))
        await open_.prompt(session, "/export out.jsonl")
    log = (folder / "out.jsonl").read_text()
    message = next(line for line in log.splitlines() if '"user_message"' in line)
    assert "selected words" in message
