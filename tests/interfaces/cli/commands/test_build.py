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
    assert ("+    return number * 2" in done.stdout) == COPIES
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
        rounds = [(each["strategy"], bool(each["problems"])) for each in found["rounds"]]
        assert rounds[:2] == [("plan", True), ("tests+coverage", True)]
        assert len(rounds) == 4
        assert "proposed, not applied: calc.py" in done.stdout
        assert "tried 1 (plan): " in done.stdout
        assert "number + 2" in (project / "calc.py").read_text()
        assert run(*found["undo"].split()[1:], cwd=project).returncode == 0
    assert (project / "calc.py").read_text() == WRONG


@pytest.fixture
def proposed(project: Path, tmp_path: Path, home: Path) -> Path:
    """The project after a build that no check could verify."""
    write(home / "handrail", {"config.toml": CHECKS})
    done = run("build", "--model", script(tmp_path, *builds.script([FIX])), TASK, cwd=project)
    if COPIES:
        assert done.stdout.rstrip().splitlines()[-1].startswith("accept: handrail build --accept s_")
    return project


@pytest.mark.promise("BUILD-18")
def test_stored_proposal_is_applied_later_as_one_change_set_and_stays_unverified(proposed: Path) -> None:
    if not COPIES:
        assert "proposal" in run("build", "--accept", cwd=proposed).stderr
        return
    told = run("status", cwd=proposed).stdout
    session = json.loads(run("status", "--json", cwd=proposed).stdout)["builds"][0]["session_id"]
    assert f"handrail build --accept {session} shows and applies its files: calc.py" in told
    accepted = run("build", "--accept", session, cwd=proposed)
    assert accepted.returncode == 5, accepted.stderr
    assert "+    return number * 2" in accepted.stdout
    assert "\nunverified: " in accepted.stdout
    assert (proposed / "calc.py").read_text() == RIGHT
    assert "--accept" not in run("status", cwd=proposed).stdout
    undo = next(row for row in accepted.stdout.splitlines() if "undo: " in row).partition("undo: handrail ")[
        2
    ]
    assert run(*undo.split(), cwd=proposed).returncode == 0
    assert (proposed / "calc.py").read_text() == WRONG


@pytest.mark.promise("BUILD-18")
def test_proposal_is_refused_where_its_files_have_changed(proposed: Path) -> None:
    (proposed / "calc.py").write_text(f"{WRONG}# mine\n")
    refused = run("build", "--accept", "--json", cwd=proposed)
    assert (refused.returncode, refused.stdout) == (2, "")
    if COPIES:
        assert "does not fit the files as they are now: calc.py" in refused.stderr
    assert (proposed / "calc.py").read_text() == f"{WRONG}# mine\n"


@pytest.mark.promise("BUILD-18")
def test_proposal_is_applied_in_a_terminal_only_after_a_yes(proposed: Path) -> None:
    if not COPIES:
        return
    for answer, text in (("n", WRONG), ("y", RIGHT)):
        with terminal("build", "--accept", cwd=proposed) as talk:
            talk.expect("+    return number * 2")
            talk.expect("Apply this? The build is unverified.")
            talk.type(f"{answer}\n")
            assert talk.end() == 5
        assert (proposed / "calc.py").read_text() == text


@pytest.mark.promise("BUILD-18")
def test_build_without_a_proposal_has_nothing_to_accept(project: Path, tmp_path: Path) -> None:
    assert "Nothing was built here yet" in run("build", "--accept", cwd=project).stderr
    run("build", "--model", script(tmp_path, *builds.script([FIX])), TASK, cwd=project)
    refused = run("build", "--accept", cwd=project)
    assert refused.returncode == 2
    assert "has no proposal" in refused.stderr


@pytest.mark.promise("CTX-6")
def test_mention_that_names_nothing_is_told_with_the_nearest(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path, *builds.script([FIX]))
    told = run("build", "--model", model, f"{TASK} See @calk.py.", cwd=project).stderr
    assert "left out" in told
    assert "calc.py" in told.partition("left out")[2].partition("checks before")[0]
