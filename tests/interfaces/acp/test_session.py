"""A whole session of an editor with `handrail acp`, over stdio, by the SDK's own client."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from acp import schema

from tests.interfaces.acp.editor import Editor, opened, shown
from tests.interfaces.cli.program import script
from tests.processes import gone, lasting, running
from tests.tools.test_login_path import MINE, profile

pytestmark = pytest.mark.anyio


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    made.mkdir()
    (made / "cart.py").write_text("def total(items):\n    return sum(items) + 1\n")
    return made


@pytest.mark.promise("ACP-1")
async def test_a_session_is_shown_live_and_the_same_when_it_is_loaded(tmp_path: Path, folder: Path) -> None:
    model = script(
        tmp_path,
        {
            "text": "I will fix it.",
            "thinking": "One is added.",
            "calls": [call("todos", todos=[{"text": "fix total"}]), call("read", path="cart.py")],
        },
        {
            "calls": [
                call(
                    "edit",
                    path="cart.py",
                    edits=[{"search": "sum(items) + 1", "replace": "sum(items)"}],
                    todo="t1",
                )
            ]
        },
        {"calls": [call("run", command="cat cart.py")]},
        {"text": "Done: total adds nothing now."},
    )

    async def decide(about: schema.ToolCallUpdate, _options: list[schema.PermissionOption]) -> str:
        return "once" if about.kind == "edit" else "reject"

    editor = Editor(decide)
    async with opened(folder, model, editor=editor) as open_:
        session = await open_.new()
        assert await open_.prompt(session, "Fix the total in ", "cart.py") == "end_turn"
        live = [update for _, update in editor.updates]
    assert (folder / "cart.py").read_text() == "def total(items):\n    return sum(items)\n"
    assert len(editor.of("agent_message_chunk")) > 3, "text comes in chunks, as the model writes it"
    assert editor.text_of("agent_thought_chunk") == "One is added."
    assert [call["kind"] for call in editor.calls().values()] == ["read", "edit", "execute"]
    read, edit, refused = editor.calls().values()
    assert read["status"] == "completed"
    assert read["locations"] == [{"path": str(folder / "cart.py")}]
    assert edit["status"] == "completed"
    assert edit["content"][0] == {
        "type": "diff",
        "path": str(folder / "cart.py"),
        "old_text": "def total(items):\n    return sum(items) + 1\n",
        "new_text": "def total(items):\n    return sum(items)\n",
    }
    assert edit["locations"][0] == {"path": str(folder / "cart.py"), "line": 2}
    assert refused["status"] == "failed"
    assert [asked.tool_call_id for asked in editor.asked] == [edit["tool_call_id"], refused["tool_call_id"]]
    assert editor.of("plan")[-1].entries[0].content == "fix total"
    assert editor.of("plan")[-1].entries[0].status == "completed"

    again = Editor()
    async with opened(folder, model, editor=again) as open_:
        sessions = (await open_.agent.list_sessions(cwd=str(folder))).sessions
        assert [each.session_id for each in sessions] == [session]
        await open_.load(session)
        loaded = [update for _, update in again.updates]
    first, *replayed = shown(loaded)
    assert first["kind"] == "user_message_chunk"
    assert first["text"] == "Fix the total in cart.py"
    assert replayed == shown(live)


@pytest.mark.promise("ACP-12")
async def test_a_commands_output_is_in_the_editors_terminal_and_the_command_is_not(
    tmp_path: Path, folder: Path
) -> None:
    text = "for n in 1 2 3; do echo line $n; done; printf 'bell \\a\\n'; exit 3"
    model = script(tmp_path, {"calls": [call("run", command=text)]}, {"text": "it failed"})
    editor = Editor()
    can = schema.ClientCapabilities(terminal=True)
    async with opened(folder, model, editor=editor, can=can) as open_:
        await open_.prompt(await open_.new(), "count")
        (terminal,) = await editor.until(lambda: [each for each in editor.terminals.values() if each.output])
    assert terminal.output == "line 1\nline 2\nline 3\nbell \n", "and no control character"
    assert terminal.process.returncode != 0
    assert text not in " ".join(terminal.words), "the command itself runs in Handrail's sandbox"
    (known,) = editor.calls().values()
    assert known["status"] == "failed"


@pytest.mark.promise("PATH-1")
async def test_commands_get_the_path_of_the_login_shell(tmp_path: Path, folder: Path, home: Path) -> None:
    model = script(tmp_path, {"calls": [call("run", command="echo $PATH")]}, {"text": "done"})
    editor = Editor()
    environ = profile(home, f"PATH={MINE}\n")
    can = schema.ClientCapabilities(terminal=True)
    async with opened(folder, model, editor=editor, can=can, **environ) as open_:
        await open_.prompt(await open_.new(), "where are my tools?")
        (terminal,) = await editor.until(lambda: [each for each in editor.terminals.values() if each.output])
    assert terminal.output.strip() == f"{MINE}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin"


@pytest.mark.promise("ACP-2")
async def test_cancel_in_the_middle_of_a_command_ends_its_processes(tmp_path: Path, folder: Path) -> None:
    word = lasting()
    model = script(tmp_path, {"calls": [call("run", command=f"sleep {word}")]}, {"text": "never"})
    editor = Editor()
    async with opened(folder, model, editor=editor) as open_, anyio.create_task_group() as tasks:
        session, stopped = await open_.new(), list[str]()

        async def prompt() -> None:
            stopped.append(await open_.prompt(session, "wait"))

        tasks.start_soon(prompt)
        await editor.until(lambda: editor.of("tool_call"))
        with anyio.fail_after(60):
            while not running(word):
                await anyio.sleep(0.01)
        await open_.agent.cancel(session_id=session)
        assert await gone(word)
        with anyio.fail_after(60):
            while not stopped:
                await anyio.sleep(0.01)
    assert stopped == ["cancelled"]
    assert [call["status"] for call in editor.calls().values()] == ["failed"]
