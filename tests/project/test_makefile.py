"""What `make run` hands to the program."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.source import ROOT

PROGRAM = f"""#!{sys.executable}
import json, os, sys
print(json.dumps([sys.argv[1:], os.getcwd()]))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with our Makefile and an installed program that prints how it was called."""
    folder = tmp_path / "a project"
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    (programs / "python").symlink_to(sys.executable)
    (programs / "handrail").write_text(PROGRAM)
    (programs / "handrail").chmod(0o755)
    (folder / ".venv" / ".run-installed").touch()
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


def made(project: Path, *words: str) -> tuple[list[str], str]:
    command = ["make", "--no-print-directory", "run", *words]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60, check=True)
    arguments, folder = json.loads(done.stdout.splitlines()[-1])
    return arguments, folder


@pytest.mark.promise("PROJ-4")
@pytest.mark.parametrize(
    "task",
    [
        "fix the test",
        "it's \"quoted\" and 'quoted'",
        "$x $$x $(shell touch made) ${HOME} `touch made` $(touch made)",
        "50% # not a comment \\",
        "two\nlines",
        "--help",
        "; touch made",
    ],
)
def test_a_task_reaches_the_program_as_it_was_typed(project: Path, task: str) -> None:
    assert made(project, f"TASK={task}", "WORKSPACE=.") == (["run", "--", task], str(project))
    arguments, folder = made(project, f"TASK={task}")
    assert arguments[-2:] == ["--", task]
    assert folder == str(project / ".try" / "cart")
    assert not list(project.rglob("made"))


def test_a_task_runs_in_a_fresh_copy_of_the_example_and_is_checked_by_its_test(project: Path) -> None:
    arguments, folder = made(project, "TASK=fix it", "EXAMPLE=todo-js")
    check = (ROOT / "examples" / "todo-js" / "CHECK").read_text().strip()
    assert arguments == ["run", "--mode", "auto", "--check", check, "--attempts", "12", "--", "fix it"]
    (Path(folder) / "todo.js").write_text("changed")
    made(project, "TASK=fix it", "EXAMPLE=todo-js")
    assert (Path(folder) / "todo.js").read_text() == (ROOT / "examples" / "todo-js" / "todo.js").read_text()
    done = subprocess.run(
        ["make", "run", "TASK=x", "EXAMPLE=nope"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "cart" in done.stderr


def test_without_a_task_the_conversation_opens_in_the_workspace(project: Path, tmp_path: Path) -> None:
    shop = tmp_path / "the $hop"
    shop.mkdir()
    assert made(project) == ([], str(project))
    assert made(project, f"WORKSPACE={shop}") == ([], str(shop))


@pytest.mark.parametrize(
    "named", [".venv/bin/handrail", "./.venv/bin/handrail", "{project}/.venv/bin/handrail", "handrail"]
)
@pytest.mark.parametrize("example", ["examples/agents/try", "examples/try"])
def test_an_example_runs_with_a_program_named_by_a_path_or_found(
    project: Path, named: str, example: str
) -> None:
    done = subprocess.run(
        [example, named.format(project=project)],
        cwd=project,
        env=os.environ
        | {"PATH": f"{project}/.venv/bin:{os.environ['PATH']}", "TASK": "fix it", "QUESTION": "why?"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    arguments, folder = json.loads(done.stdout.splitlines()[-1])
    assert (arguments[-1], Path(folder).parent) in [
        ("@report why?", project / ".try"),
        ("fix it", project / ".try"),
    ]
    missing = subprocess.run(
        [example, "bin/none"], cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert missing.returncode == 2
    assert "There is no program bin/none." in missing.stderr
