"""`/split` in a terminal: planned, shown, started by the user, and applied."""

import json
from pathlib import Path

import pytest

from tests.app.splits.splitting import CHECKS, answer, edited, project
from tests.interfaces.cli.program import run, script, terminal
from tests.pipelines.build.builds import COPIES
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

ENTER, CTRL_D = "\r", "\x04"
PLAN = {"subtasks": [{"id": "one", "instruction": "Do one.", "files": ["m00.py"]}]}


@pytest.mark.promise("SPLIT-10")
def test_message_is_split_shown_and_started_only_after_a_yes(tmp_path: Path, home: Path) -> None:
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": CHECKS})
    root = project(tmp_path / "work", 1)
    before = (root / "m00.py").read_text()
    answers = [
        {"when": "The request: ", "text": [json.dumps(PLAN)]},
        answer("Do one.", edited("m00.py", "END = 0", "END = 1")),
    ]
    with terminal("--model", script(tmp_path, *answers), cwd=root) as talk:
        talk.expect("mode ask")
        talk.type("/split Improve it." + ENTER)
        talk.expect("all at once")
        talk.expect("Start it?")
        talk.type("n" + ENTER)
        talk.expect("not started")
        assert (root / "m00.py").read_text() == before
        talk.type("/split Improve it." + ENTER)
        talk.expect("Start it?")
        talk.type("y" + ENTER)
        talk.expect("applied as one change set" if COPIES else "unverified")
        talk.type(CTRL_D)
        talk.end()
    if COPIES:
        assert (root / "m00.py").read_text() == before.replace("END = 0", "END = 1")
    assert run("splits", cwd=root).stdout.count("planned") == 1


@pytest.mark.promise("SPLIT-10")
def test_options_strategy_and_plan_can_be_chosen_before_it_starts(tmp_path: Path, home: Path) -> None:
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": CHECKS})
    root = project(tmp_path / "work", 3)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/m01.py/m02.py/; s/"parallel": 2/"parallel": 300/\' "$1"\n')
    editor.chmod(0o755)
    model = script(
        tmp_path, *[answer(f"### m0{n}.py", edited(f"m0{n}.py", "END = 0", "X = 1")) for n in range(3)]
    )
    with terminal("--model", model, cwd=root, EDITOR=str(editor), VISUAL="") as talk:
        talk.expect("mode ask")
        talk.type("/split --granularity huge Improve it." + ENTER)
        talk.expect("'huge' is not one of")
        talk.type("/split --files m0[01].py --granularity fine --parallel 2 Improve it." + ENTER)
        talk.expect("2 subtasks, fine")
        talk.expect("* by dependencies")
        talk.expect("Start it?")
        talk.type("s" + ENTER)
        talk.expect("* one by one")
        talk.expect("Start it?")
        talk.type("e" + ENTER)
        talk.expect("limits.parallel")
        talk.expect("Start it?")
        editor.write_text("#!/bin/sh\nexit 1\n")
        talk.type("e" + ENTER)
        talk.expect("Editing failed. Set EDITOR")
        talk.expect("Start it?")
        editor.write_text('#!/bin/sh\nsed -i \'s/m01.py"/m02.py"/\' "$1"\n')
        talk.type("edit" + ENTER)
        talk.expect("m02.py")
        talk.expect("* one by one")
        talk.expect("Start it?")
        talk.type("yes" + ENTER)
        talk.expect("applied as one change set" if COPIES else "unverified")
        talk.type(CTRL_D)
        talk.end()
    if COPIES:
        changed = [(root / f"m0{n}.py").read_text().endswith("X = 1\n") for n in range(3)]
        assert changed == [True, False, True]
