"""The workflows: what CI runs is what `make test` runs, on the versions that the project declares."""

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.interfaces.cli.program import command, environment, script
from tests.project.source import ROOT
from tests.verification.projects import commit, write

CI = ROOT / ".github/workflows/ci.yml"
WORKFLOWS = (CI, ROOT / "examples/ci/verify.yml", ROOT / "examples/ci/review.yml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def workflow(path: Path) -> dict[Any, Any]:
    loaded = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_has_the_form_that_the_runner_takes(path: Path) -> None:
    found = workflow(path)
    # YAML reads the key `on` as true.
    assert set(found) <= {"name", True, "permissions", "concurrency", "jobs"}
    assert found["permissions"], "a workflow says what its token may do"
    for job in found["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert set(step) <= {"uses", "run", "with", "env", "if", "id", "name"}, step
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@v\d+", step.get("uses", "a/b@v1"))
        expressions = re.findall(r"\$\{\{(.*?)\}\}", str(job))
        assert all(re.match(r" (matrix|secrets|github|runner)\.", each) for each in expressions)


@pytest.mark.promise("CI-1")
def test_ci_runs_make_test_on_every_version_that_the_project_declares() -> None:
    job = workflow(CI)["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    declared = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert matrix["python"] == declared
    assert PROJECT["requires-python"] == f">={declared[0]}"
    assert {each.partition("-")[0] for each in matrix["os"]} == {"ubuntu", "macos"}
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == "make test"
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"python{version}" in makefile for version in declared)


FIXED = "def half(x):\n    return x / 2\n"
BROKEN = "def half(x):\n    return x / 3\n"
CHECK = "grep -q '/ 2' half.py"


@pytest.fixture
def pull_request(tmp_path: Path) -> Path:
    """A repository whose last commit breaks the check."""
    project = tmp_path / "project"
    project.mkdir()
    home = Path(os.environ["HANDRAIL_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    settings = f'[checks]\ndetect = false\n[[checks.commands]]\nname = "half"\nrun = "{CHECK}"\n'
    (home / "config.toml").write_text(settings, encoding="utf-8")
    commit(write(project, {"half.py": FIXED, ".gitignore": "reports\n"}))
    write(project, {"half.py": BROKEN})
    commit(project)
    return project


def review(project: Path, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    program = folder / "handrail"
    program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in command()) + ' "$@"\n')
    program.chmod(0o755)
    given = {"HANDRAIL": str(program), "BASE": "HEAD~1", "REVIEW_AGENT": str(ROOT / "examples/agents/review")}
    return subprocess.run(
        [ROOT / "examples/ci/review.sh"],
        cwd=project,
        env=environment(**given, **variables),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.promise("CI-2")
def test_pull_request_is_verified_reviewed_and_gets_a_fix_that_passes(
    pull_request: Path, tmp_path: Path
) -> None:
    found = script(tmp_path, {"text": "half.py:2 divides by 3."}, name="review.json")
    edit = {"name": "write", "arguments": {"path": "half.py", "text": FIXED}}
    more = {"name": "write", "arguments": {"path": "a new file.md", "text": "why\n"}}
    read = {"name": "read", "arguments": {"path": "half.py"}}
    fix = script(tmp_path, {"calls": [read]}, {"calls": [edit, more]}, {"text": "Fixed."}, name="fix.json")
    done = review(pull_request, tmp_path, REVIEW_MODEL=found, FIX_MODEL=fix, CHECK=CHECK)
    reports = pull_request / "reports"
    assert "half.py:2 divides by 3." in (reports / "review.md").read_text(), done.stderr
    assert (pull_request / "half.py").read_text() == BROKEN
    assert not (pull_request / "a new file.md").exists()
    status = ["git", "status", "--porcelain"]
    assert subprocess.run(status, cwd=pull_request, capture_output=True, check=True).stdout == b""
    assert "fix: reports/fix.patch makes the check pass" in done.stderr
    subprocess.run(["git", "apply", "reports/fix.patch"], cwd=pull_request, check=True)
    assert (pull_request / "half.py").read_text() == FIXED
    assert (pull_request / "a new file.md").read_text() == "why\n"


def test_without_a_model_the_change_is_only_verified(pull_request: Path, tmp_path: Path) -> None:
    done = review(pull_request, tmp_path)
    assert "review:" not in done.stderr
    assert sorted(os.listdir(pull_request / "reports")) == ["verify.sarif", "verify.txt", "verify.xml"]
