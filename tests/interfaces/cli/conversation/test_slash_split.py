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
