"""`handrail verify` as a person and a CI job call it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interfaces.cli.program import command, environment, run, script, terminal
from tests.project.source import ROOT
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, commit, write

CHECKS = """\
[checks]
detect = false
[[checks.commands]]
name = "lint"
kind = "lint"
run = "sh lint.sh"
"""
FAILING = "echo 'src/a.py:2: error: too long'\nexit 1\n"


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A project whose user has set up one check."""
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": CHECKS})
    return write(tmp_path / "shop", {"lint.sh": "true\n", "src/a.py": "x = 1\n"})


def test_exit_status_and_lines_for_a_person(project: Path) -> None:
    passed = run("verify", cwd=project)
    assert passed.returncode == 0, passed.stderr
    assert "passed: lint passed" in passed.stdout
    assert "sandbox" in passed.stdout
    write(project, {"lint.sh": FAILING})
    failed = run("verify", cwd=project)
    assert failed.returncode == 1
    assert "src/a.py:2  error: too long" in failed.stdout
    assert failed.stderr.split()[:2] == ["lint", "failed"]
    listed = run("verify", "--list", cwd=project)
    assert (listed.returncode, listed.stdout) == (0, "lint  sh lint.sh\n")


def test_json_sarif_and_junit(project: Path) -> None:
    write(project, {"lint.sh": FAILING})
    done = run("verify", "--json", "--sarif", "v.sarif", "--junit", "v.xml", cwd=project)
    found = json.loads(done.stdout)
    assert (done.returncode, found["exit_status"], found["status"]) == (1, 1, "failed")
    assert found["checks"][0]["issues"][0]["path"] == "src/a.py"
    assert json.loads((project / "v.sarif").read_text())["version"] == "2.1.0"
    assert "too long" in (project / "v.xml").read_text()
    wrong = run("verify", "--sarif", "missing/v.sarif", cwd=project)
    assert (wrong.returncode, "cannot be written" in wrong.stderr) == (2, True)


@pytest.mark.promise("VERIFY-2")
def test_no_check_at_all_is_status_5(tmp_path: Path, home: Path) -> None:
    offer(best_sandbox())
    done = run("verify", cwd=write(tmp_path / "empty", {"a.txt": ""}))
    assert (done.returncode, "unverified: no check was found" in done.stdout) == (5, True)


@pytest.mark.promise("VERIFY-8")
def test_checks_of_a_repository_run_only_if_they_are_trusted(project: Path) -> None:
    theirs = '[checks]\nskip = ["lint"]\n[[checks.commands]]\nname = "theirs"\nrun = "echo ran; exit 1"\n'
    write(project, {".handrail/config.toml": theirs})
    ignored = run("verify", cwd=project)
    assert (ignored.returncode, "theirs failed" in ignored.stdout) == (0, False)
    assert "checks.commands was ignored: it would choose which programs check your code" in ignored.stderr
    trusted = run("verify", "--trust", cwd=project)
    assert (trusted.returncode, "theirs failed" in trusted.stdout) == (1, True)
    assert "lint" not in trusted.stdout


def test_a_terminal_shows_a_clock_for_each_check(project: Path) -> None:
    write(project, {"lint.sh": "until [ -e go ]; do sleep 0.05; done\n"})
    settings = Path(os.environ["HANDRAIL_HOME"]) / "config.toml"
    settings.write_text(f"{CHECKS}seconds = 3\n")
    with terminal("verify", cwd=project) as shown:
        shown.expect("lint  running")
        shown.expect("1 s")
        shown.expect("lint  unverified")
        shown.expect("stopped after 3 s")
        assert shown.end() == 5


def test_ctrl_c_ends_the_checks(project: Path) -> None:
    write(project, {"lint.sh": "echo $$ > pid\nexec sleep 600\n"})
    with terminal("verify", cwd=project) as shown:
        shown.expect("lint  running")
        shown.type("\x03")
        assert shown.end() == 130


def test_slash_verify_shows_the_verdict_in_a_conversation(project: Path) -> None:
    write(project, {"lint.sh": FAILING})
    with terminal("--model", script(project), cwd=project) as talk:
        talk.expect(">")
        talk.type("/verify\r")
        talk.expect("src/a.py:2")
        talk.expect("failed: lint failed")
        talk.type("/verify lnt\r")
        talk.expect("There is no check lnt here")
        talk.type("\x04")
        assert talk.end() == 0


def test_doctor_lists_the_checks(project: Path) -> None:
    found = run("doctor", cwd=project).stdout
    assert "`handrail verify` runs lint (command)" in found


def test_the_script_for_ci_keeps_reports_and_the_exit_status(project: Path) -> None:
    commit(write(project, {"lint.sh": FAILING}))
    write(project, {"src/a.py": "y = 2\n"})
    summary = project / "summary.md"
    program = project / "handrail"
    program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in command()) + ' "$@"\n')
    program.chmod(0o755)
    changes = {"HANDRAIL": str(program), "GITHUB_STEP_SUMMARY": str(summary), "BASE": "HEAD"}
    done = subprocess.run(
        [ROOT / "examples/ci/verify.sh"],
        cwd=project,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    copies = best_sandbox().name == "bubblewrap"
    assert done.returncode == (0 if copies else 1), done.stderr
    assert ("was there before" in done.stdout) == copies
    assert "```" in summary.read_text()
    assert {path.name for path in (project / "reports").iterdir()} == {
        "verify.sarif",
        "verify.xml",
        "verify.txt",
    }


def test_the_workflow_runs_the_script() -> None:
    workflow = (ROOT / "examples/ci/verify.yml").read_text()
    assert "- run: .github/verify.sh\n" in workflow
    assert "sarif_file: reports/verify.sarif" in workflow


def test_fixes_are_shown_and_applied_only_on_the_users_word(tmp_path: Path, home: Path) -> None:
    offer(best_sandbox())
    wrong = "import os\n\n\ndef one() -> int:\n    return 1\n"
    root = commit(write(tmp_path / "shop", {"ruff.toml": "", "a.py": wrong}))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    alone = run("verify", "--fix", cwd=root, PATH=path)
    assert (alone.returncode, (root / "a.py").read_text()) == (1, wrong)
    assert "-import os" in alone.stderr
    assert "nobody can be asked" in alone.stderr
    with terminal("verify", "--fix", cwd=root, PATH=path) as asked:
        asked.expect("a.py: ruff check")
        asked.expect("Apply this?")
        asked.type("y\r")
        asked.expect("passed: lint, consistency passed")
        assert asked.end() == 0
    assert "import os" not in (root / "a.py").read_text()
    undone = run("undo", cwd=root, PATH=path)
    assert undone.returncode == 0, undone.stderr
    assert (root / "a.py").read_text() == wrong


@pytest.mark.promise("FIX-3")
def test_lost_changelog_entry_is_reported_and_restored_on_the_users_word(tmp_path: Path, home: Path) -> None:
    offer(best_sandbox())
    old = "# Changelog\n\n## 1.1 - 2026-02-01\n- More\n\n## 1.0 - 2026-01-01\n- First\n"
    root = commit(write(tmp_path / "shop", {"CHANGELOG.md": old, "CHANGES.txt": "1.0\n===\n- x\n"}))
    write(root, {"CHANGELOG.md": old.replace("- More\n", "").replace("2026-01-01", "2026-01-09")})
    (root / "CHANGES.txt").unlink()
    told = run("verify", cwd=root).stdout
    assert "text of the entry `1.1 - 2026-02-01` was lost or changed" in " ".join(told.split())
    assert "the entry `1.0 - 2026-01-01` was removed or its heading was changed" in " ".join(told.split())
    assert "the changelog was deleted" in " ".join(told.split())
    with terminal("verify", "--only", "docs", "--fix", cwd=root) as asked:
        asked.expect("CHANGELOG.md: restored")
        asked.expect("Apply this?")
        asked.type("y\r")
        asked.end()
    assert (root / "CHANGELOG.md").read_text() == old
    assert (root / "CHANGES.txt").read_text() == "1.0\n===\n- x\n"


def test_fixes_in_a_workspace_with_intents_belong_to_the_named_one(tmp_path: Path, home: Path) -> None:
    offer(best_sandbox())
    wrong = "import os\n\n\ndef one() -> int:\n    return 1\n"
    intents = "intents:\n  - id: CART\n    name: cart\n    status: active\n    owned_scope: ['**']\n"
    files = {"ruff.toml": "", "a.py": wrong, ".orchestration/active_intents.yaml": intents}
    root = commit(write(tmp_path / "shop", files))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with terminal("verify", "--fix", cwd=root, PATH=path) as without:
        without.expect("Apply this?")
        without.type("y\r")
        without.expect("Name it with --intent. There are: CART.")
        assert without.end() != 0
    assert (root / "a.py").read_text() == wrong
    unknown = run("verify", "--fix", "--intent", "NOPE", cwd=root, PATH=path)
    assert unknown.returncode != 0
    assert "NOPE" in unknown.stderr
    with terminal("verify", "--fix", "--intent", "CART", cwd=root, PATH=path) as asked:
        asked.expect("Apply this?")
        asked.type("y\r")
        asked.expect("passed: lint, consistency passed")
        assert asked.end() == 0
    assert "import os" not in (root / "a.py").read_text()
