"""Slash commands in an editor: what they say, what they send, and that stop ends them."""

import os
from pathlib import Path

import anyio
import pytest
from acp import schema

from tests.interfaces.acp.editor import DEADLINE, Editor, opened
from tests.interfaces.acp.test_session import call
from tests.interfaces.cli.commands.test_build import CHECKS, TESTS
from tests.interfaces.cli.program import run, script
from tests.pipelines.build import builds
from tests.processes import gone, lasting, running
from tests.tools.sandbox.machine import offer
from tests.tools.sources.places import words
from tests.verification.projects import best_sandbox

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def settings() -> Path:
    folder = Path(os.environ["HANDRAIL_HOME"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.promise("ACP-15")
async def test_commands_answer_in_the_conversation(tmp_path: Path, folder: Path, settings: Path) -> None:
    (settings / "commands").mkdir()
    (settings / "commands" / "greet.md").write_text("Say hello to $ARGUMENTS.\n")
    assert run("sources", "add", "plain", "--", *words(), cwd=folder).returncode == 0
    model = script(
        tmp_path,
        {"calls": [call("todos", todos=[{"text": "count"}])]},
        {"text": "noted"},
        {"when": "Say hello to Ada.", "text": "Hello, Ada."},
    )
    editor = Editor()
    async with opened(folder, model, editor=editor) as open_:
        session = await open_.new()
        await open_.prompt(session, "note it")

        async def said(command: str) -> str:
            before = len(editor.text_of())
            assert await open_.prompt(session, command) == "end_turn"
            return editor.text_of()[before:]

        assert "`/greet`" in await said("/help")
        assert "Hello, Ada." in await said("/greet Ada")
        assert "- [ ] t1: count" in await said("/todos")
        assert "in, " in await said("/cost")
        assert "has no build" in await said("/accept")
        assert "plain (on)" in await said("/sources")
        assert "Only looks." in await said("/sources plain")
        assert "Did you mean /todos?" in await said("/todo")
        assert "the editor starts new sessions" in await said("/clear")
        await said("/rename Counting")
        await editor.until(lambda: [each.title for each in editor.of("session_info_update")][-1:])
        assert editor.of("session_info_update")[-1].title == "Counting"
        names = {each.name for each in editor.of("available_commands_update")[-1].available_commands}
        assert {"greet", "sources", "verify", "rewind"} <= names


@pytest.mark.promise("ACP-15")
async def test_a_rewind_shows_what_it_does_and_asks_how_far(tmp_path: Path, folder: Path) -> None:
    model = script(tmp_path, {"calls": [call("write", path="b.txt", text="new\n")]}, {"text": "written"})
    offered: list[str] = []
    answers = iter(["none", "f"])

    async def decide(about: schema.ToolCallUpdate, options: list[schema.PermissionOption]) -> str:
        assert "b.txt: deleted" in str(about.content)
        offered[:] = [option.name for option in options]
        return next(answers)

    editor = Editor(decide)
    async with opened(folder, model, "--mode", "edit", editor=editor) as open_:
        session = await open_.new()
        await open_.prompt(session, "write it")
        await open_.prompt(session, "/rewind 1")
        assert "Nothing was changed." in editor.text_of()
        assert (folder / "b.txt").exists()
        await open_.prompt(session, "/rewind 1")
        await editor.until(lambda: not (folder / "b.txt").exists())
        await open_.prompt(session, "/redo")
        await editor.until((folder / "b.txt").exists)
    assert offered == ["Files", "Conversation", "Both", "No"]


@pytest.mark.promise("ACP-15")
async def test_stop_ends_a_check_that_a_command_runs(tmp_path: Path, folder: Path, settings: Path) -> None:
    word = lasting()
    check = f'[[checks.commands]]\nname = "slow"\nrun = "sleep {word}"\n'
    (settings / "config.toml").write_text(f"[checks]\ndetect = false\n{check}", encoding="utf-8")
    editor = Editor()
    async with (
        opened(folder, script(tmp_path, {"text": "never"}), editor=editor) as open_,
        anyio.create_task_group() as tasks,
    ):
        session, stopped = await open_.new(), list[str]()

        async def verify() -> None:
            stopped.append(await open_.prompt(session, "/verify"))

        tasks.start_soon(verify)
        with anyio.fail_after(DEADLINE):
            while not running(word):
                await anyio.sleep(0.01)
        await open_.agent.cancel(session_id=session)
        assert await gone(word)
    assert stopped == ["cancelled"]


@pytest.mark.promise("BUILD-21")
async def test_build_applies_what_the_checks_accept(tmp_path: Path, folder: Path, settings: Path) -> None:
    offer(best_sandbox())
    (settings / "config.toml").write_text(CHECKS + TESTS)
    (folder / "calc.py").write_text(builds.WRONG)
    model = script(tmp_path, *builds.script([builds.FIX]))
    editor = Editor()
    async with opened(folder, model, "--mode", "edit", editor=editor) as open_:
        session = await open_.new()
        await open_.prompt(session, "/build")
        assert "Say what to build" in editor.text_of()
        assert await open_.prompt(session, f"/build {builds.TASK}") == "end_turn"
    assert ("Complete: double returns twice its number" in editor.text_of()) == builds.COPIES
    assert (folder / "calc.py").read_text() == (builds.RIGHT if builds.COPIES else builds.WRONG)
