"""`/accept` in a terminal: the proposal of a build that is not complete."""

from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal
from tests.pipelines.build import builds
from tests.pipelines.build.builds import COPIES, FIX, RIGHT, TASK, WRONG
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

ENTER, CTRL_D = "\r", "\x04"
NO_CHECK = '[checks]\ndetect = false\nskip = ["consistency"]\n'


@pytest.mark.promise("BUILD-18")
def test_proposal_is_shown_and_applied_only_after_a_yes(tmp_path: Path, home: Path) -> None:
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": NO_CHECK})
    root = write(tmp_path / "work", {"calc.py": WRONG})
    with terminal("--model", script(tmp_path, *builds.script([FIX])), cwd=root) as talk:
        talk.expect("mode ask")
        talk.type("/accept" + ENTER)
        talk.expect("There is no session yet")
        talk.type(f"/build {TASK}" + ENTER)
        if not COPIES:
            talk.expect("failed")
            return
        talk.expect("to see and apply it: /accept")
        talk.expect("unverified")
        for answer, end in (("n", "nothing was changed"), ("y", "undo: handrail undo --session")):
            talk.type("/accept" + ENTER)
            talk.expect("+     return number * 2")
            talk.expect("Apply these files?")
            talk.type(answer + ENTER)
            talk.expect(end)
            assert (root / "calc.py").read_text() == (WRONG if answer == "n" else RIGHT)
        talk.type(CTRL_D)
        talk.end()
    undo = run("undo", cwd=root)
    assert (undo.returncode, (root / "calc.py").read_text()) == (0, WRONG), undo.stderr
