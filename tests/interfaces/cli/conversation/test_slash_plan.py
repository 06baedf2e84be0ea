"""Plans, next steps after work, and auto-continue in a terminal; a plan without one."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.program import run, script, terminal

ENTER, CTRL_D = "\r", "\x04"
PLAN = {
    "objective": "A greeting",
    "steps": [
        {"description": "Write hello.txt", "files": ["hello.txt"], "check": ""},
        {"description": "Write bye.txt", "files": [], "check": ""},
    ],
}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


SCRIPT = (
    {"when": "Do step 1 of 2", **call("write", path="hello.txt", text="hello\n", todo="t1")},
    {"when": "Do step 2 of 2", **call("write", path="ciao.txt", text="ciao\n", todo="t2")},
    {"when": "Change nothing now", "text": "Nothing is there yet."},
    {"when": "Output of look", "text": json.dumps(PLAN)},
    {"when": "", "text": "Written."},
)


@pytest.mark.promise("PLAN-7")
def test_a_plan_is_shown_edited_approved_and_followed_in_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/bye.txt/ciao.txt/' \"$1\"\n")
    editor.chmod(0o755)
    model = script(tmp_path, *SCRIPT)
    with terminal("--model", model, cwd=tmp_path / "work", EDITOR=str(editor), VISUAL="") as talk:
        talk.expect("mode ask")
        talk.type("/plan" + ENTER)
        talk.expect("There is no plan")
        talk.type("/plan Write a greeting." + ENTER)
        talk.expect("Objective: A greeting")
        talk.expect("2. Write bye.txt")
        talk.expect("/plan approve")
        talk.expect("/next sends the first")
        talk.type("/next 2" + ENTER)
        talk.expect("ciao.txt")  # the editor has changed it; Enter takes it
        talk.type(ENTER)
        talk.expect("changed; /plan approve follows it")
        talk.type("/plan" + ENTER)
        talk.expect("not approved")
        talk.type("/plan approve" + ENTER)
        talk.expect("step      1 of 2: Write hello.txt")
        talk.expect("step      2 of 2: Write ciao.txt")
        talk.expect("2 of 2 steps of the plan are done")
        talk.expect("Show the diff: /diff")
        talk.type("/plan" + ENTER)
        talk.expect("approved, 2 of 2 steps are done")
        talk.type(CTRL_D)
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"hello.txt", "ciao.txt"}


@pytest.mark.promise("PLAN-8")
def test_without_a_terminal_the_plan_is_the_answer_and_nothing_is_done(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    model = script(tmp_path, *SCRIPT)
    done = run("run", "Write a greeting.", "--mode", "plan", "--model", model, cwd=tmp_path / "work")
    text = "Objective: A greeting\n\n1. Write hello.txt\n   files: hello.txt\n2. Write bye.txt\n"
    assert (done.returncode, done.stdout) == (0, text)
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.promise("NEXT-2")
def test_a_next_step_of_handrail_may_be_a_command_and_one_of_the_model_is_words(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    offered = {"text": "Nothing.", **call("next_steps", steps=["/diff"])}
    answers = (
        {"when": "offer", **offered},
        {"when": "/diff", "text": "I was sent a slash."},
        {"when": "write", **call("write", path="a.txt", text="the text\n")},
        {"when": "", "text": "Written."},
    )
    with terminal("--model", script(tmp_path, *answers), "--mode", "edit", cwd=tmp_path / "work") as talk:
        talk.expect("mode edit")
        talk.type("offer me something" + ENTER)
        talk.expect("1. /diff")
        talk.expect("/next sends it")
        talk.type("/next" + ENTER)
        talk.expect("I was sent a slash.")
        talk.type("write it" + ENTER)
        talk.expect("2. Show the diff: /diff")
        talk.expect("/next 2 the second")
        talk.type("/next 2" + ENTER)
        talk.expect("+ the text")
        talk.type("/auto" + ENTER)
        talk.expect("off, from the settings")
        talk.type("/auto on" + ENTER)
        talk.expect("auto      on")
        talk.type("/auto maybe" + ENTER)
        talk.expect("Say /auto on or /auto off.")
        talk.type(CTRL_D)


@pytest.mark.promise("NEXT-2")
def test_next_steps_of_an_imported_session_are_not_taken(tmp_path: Path) -> None:
    written = call("write", path="a.txt", text="a\n")
    model = script(tmp_path, written, {"text": "Written."})
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    done = run("run", "--model", model, "--mode", "edit", "--route", "agent", "Do it", cwd=tmp_path / "one")
    assert done.returncode == 0, done.stderr
    session = json.loads(run("sessions", "--json", cwd=tmp_path / "one").stdout)["id"]
    assert run("export", session, str(tmp_path / "s.jsonl"), cwd=tmp_path / "one").returncode == 0
    assert run("import", str(tmp_path / "s.jsonl"), cwd=tmp_path / "two").returncode == 0
    with terminal("resume", "--model", model, cwd=tmp_path / "two") as talk:
        talk.expect("Show the diff")
        talk.type("/plan" + ENTER)
        talk.expect("There is no plan")
        talk.type("/next" + ENTER)
        talk.expect("suggests no next step")
        talk.type(CTRL_D)
        assert talk.end() == 0
