"""/agents and /init in the conversation."""

from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal
from tests.pipelines.agents import SMALL, agent

pytestmark = pytest.mark.usefixtures("no_server")
ENTER, CTRL_D = "\r", "\x04"


@pytest.mark.promise("AGENT-60")
def test_agents_shows_what_the_shell_command_shows(tmp_path: Path) -> None:
    agent(tmp_path, "quick", SMALL)
    listed = run("agents", cwd=tmp_path).stdout.splitlines()
    details = run("agents", "show", "quick", cwd=tmp_path).stdout.splitlines()
    with terminal("--model", script(tmp_path, {"text": "Hello."}), cwd=tmp_path) as talk:
        talk.expect("mode ask")
        talk.type("/agents" + ENTER)
        for row in listed:
            talk.expect(f"  {row}")
        talk.expect("/agents runs lists past runs")
        talk.type("/agents quick" + ENTER)
        talk.expect(f"  {details[0]}")
        talk.expect("  trust      of this workspace, not trusted")
        talk.type("/agents runs quick" + ENTER)
        talk.expect("There is no run of quick yet.")
        talk.type("/agents nobody" + ENTER)
        talk.expect("There is no agent 'nobody'. Agents here: quick, research.")
        talk.type("/agents show quick" + ENTER)
        talk.expect("Say /agents, /agents NAME")
        talk.type(CTRL_D)
        assert talk.end() == 0


@pytest.mark.promise("TASK-22")
def test_tasks_shows_the_list_and_undoes_its_last_change(tmp_path: Path) -> None:
    with terminal("--model", script(tmp_path, {"text": "Hello."}), cwd=tmp_path) as talk:
        talk.expect("mode ask")
        talk.type("/tasks" + ENTER)
        talk.expect("Nothing to do. Say what you want to do")
        run("tasks", "add", "Call the dentist", "--on", "today", cwd=tmp_path)
        talk.type("/tasks week" + ENTER)
        talk.expect("today")
        talk.expect("1 ○ Call the dentist")
        talk.type("/tasks yacht" + ENTER)
        talk.expect("No task has these words.")
        talk.type("/tasks undo" + ENTER)
        talk.expect("Removed 1 Call the dentist")
        talk.type("/tasks undo" + ENTER)
        talk.expect("There is no change of the task list to undo.")
        talk.type(CTRL_D)
        assert talk.end() == 0


@pytest.mark.promise("TERM-63")
def test_init_shows_the_diff_and_asks(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "Makefile").write_text("test:\n\tpytest\n")
    model = script(tmp_path, {"error": {"kind": "give_up", "message": "no"}})
    with terminal("--model", model, "/init", cwd=shop) as talk:
        talk.expect("survey")
        talk.expect("+ - `make test`: test (Makefile)")
        talk.expect("y yes")
        talk.type("y")
        talk.expect("AGENTS.md is written.")
        talk.expect("$0.00")
        talk.type("/undo" + ENTER)
        talk.expect("undone")
        talk.type(CTRL_D)
        assert talk.end() == 0
    assert not (shop / "AGENTS.md").exists()
