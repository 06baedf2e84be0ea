"""`handrail build` as a person and a program call it."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script, terminal
from tests.pipelines.build import builds
from tests.pipelines.build.builds import COPIES, FIX, PLAN, RIGHT, TASK, WRONG
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

CHECKS = """\
[checks]
detect = false
skip = ["consistency"]
"""
TESTS = """\
[[checks.commands]]
name = "tests"
run = "grep -q 'number \\\\* 2' calc.py"
"""


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A project whose user has set up one check."""
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": CHECKS + TESTS})
    return write(tmp_path / "work", {"calc.py": WRONG})


@pytest.mark.promise("BUILD-7")
def test_complete_build_shows_stages_checks_and_how_to_undo_it(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path, *builds.script([FIX]))
    done = run("build", "--model", model, TASK, cwd=project)
    if not COPIES:
        assert done.returncode == 1
        return
    assert done.returncode == 0, done.stderr
    order = ["checks before the task", "plan", "audit", "approved", "execute", "document", "verify", "apply"]
    places = [done.stderr.index(each) for each in order]
    assert places == sorted(places)
    assert done.stdout.startswith("complete: double returns twice its number\n")
    assert "changed: calc.py" in done.stdout
    assert "0 corrections" in done.stdout
    assert (project / "calc.py").read_text() == RIGHT
    undo = next(text for text in done.stdout.splitlines() if "undo: " in text).partition("undo: handrail ")[2]
    undone = run(*undo.split(), cwd=project)
    assert (undone.returncode, (project / "calc.py").read_text()) == (0, WRONG), undone.stderr
    assert "complete at the first attempt: 1 of 1" in run("stats", "build", cwd=project).stdout


@pytest.mark.promise("BUILD-21")
def test_slash_command_in_a_terminal_builds_its_task(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path, *builds.script([FIX]))
    with terminal("--model", model, "--mode", "edit", cwd=project) as talk:
        talk.expect("mode edit")
        talk.type("/build" + "\r")
        talk.expect("Say what to build")
        talk.type(f"/build {TASK}\r")
        if COPIES:
            for words in ("plan", "audit", "verify", "Complete: double returns twice its number"):
                talk.expect(words)
        talk.expect("$0.00")
        talk.type("\x04")
        assert talk.end() == 0
    assert (project / "calc.py").read_text() == (RIGHT if COPIES else WRONG)


@pytest.mark.promise("BUILD-21")
def test_run_with_the_route_builds_its_task(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path, *builds.script([FIX]))
    done = run("run", "--route", "build", "--mode", "edit", "--model", model, TASK, cwd=project)
    assert (done.returncode, (project / "calc.py").read_text()) == ((0, RIGHT) if COPIES else (1, WRONG))
    assert done.stdout.startswith("Complete: double returns twice its number") == COPIES


@pytest.mark.promise("BUILD-7")
def test_question_of_the_model_is_the_one_object_on_stdout_and_exit_status_6(
    project: Path, tmp_path: Path
) -> None:
    asking = {**PLAN, "escalation": {"kind": "ambiguous", "reason": "Twice, or plus two?"}}
    model = script(tmp_path, *builds.script([FIX], plan=asking))
    done = run("build", "--json", "--model", model, TASK, cwd=project)
    found = json.loads(done.stdout)
    state = "escalated" if COPIES else "failed"
    assert (found["state"], found["exit_status"], done.returncode) == (state, *([6 if COPIES else 1] * 2))
    assert found["files"] == []
    assert (project / "calc.py").read_text() == WRONG
    if COPIES:
        assert "Twice, or plus two?" in found["detail"]
        assert [each["after"] for each in found["history"]] == ["planning", "awaiting_plan_gate", "escalated"]


@pytest.mark.promise("BUILD-5")
def test_unverified_result_is_applied_only_on_the_users_word(
    project: Path, tmp_path: Path, home: Path
) -> None:
    write(home / "handrail", {"config.toml": CHECKS})
    model = script(tmp_path, *builds.script([FIX]))
    done = run("build", "--model", model, TASK, cwd=project)
    assert (done.returncode, (project / "calc.py").read_text()) == (5 if COPIES else 1, WRONG), done.stdout
    accepted = run("build", "--model", model, "--accept-unverified", "--json", TASK, cwd=project)
    found = json.loads(accepted.stdout)
    assert (found["state"], accepted.returncode) == (("unverified", 5) if COPIES else ("failed", 1))
    assert (project / "calc.py").read_text() == (RIGHT if COPIES else WRONG)


@pytest.mark.promise("BUILD-16")
def test_best_files_of_a_failed_build_are_applied_only_on_the_users_word(
    project: Path, tmp_path: Path
) -> None:
    model = script(tmp_path, *builds.script([builds.replaced("number + 1", "number + 2")]))
    done = run("build", "--model", model, TASK, cwd=project)
    assert (done.returncode, (project / "calc.py").read_text()) == (6 if COPIES else 1, WRONG), done.stdout
    kept = run("build", "--model", model, "--keep-failed", "--json", TASK, cwd=project)
    found = json.loads(kept.stdout)
    assert (found["state"], kept.returncode) == (("escalated", 6) if COPIES else ("failed", 1))
    if COPIES:
        assert "proposed, not applied: calc.py; --keep-failed applies" in done.stdout
        assert "number + 2" in (project / "calc.py").read_text()
        assert run(*found["undo"].split()[1:], cwd=project).returncode == 0
    assert (project / "calc.py").read_text() == WRONG
