"""What `make run` hands to the program."""

import json
import os
import pty
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


def test_without_task_and_terminal_the_page_of_the_workspace_is_served(project: Path, tmp_path: Path) -> None:
    shop = tmp_path / "the $hop"
    shop.mkdir()
    assert made(project, f"WORKSPACE={shop}") == (["serve"], str(shop))
    assert made(project, "WORKSPACE=.") == (["serve"], str(project))


@pytest.mark.parametrize("words", [["WORKSPACE=."], []])
def test_without_a_task_the_conversation_opens_in_a_terminal(project: Path, words: list[str]) -> None:
    master, slave = pty.openpty()
    try:
        command = ["make", "-s", "run", *words]
        subprocess.run(
            command, cwd=project, stdin=slave, stdout=slave, stderr=subprocess.PIPE, timeout=60, check=True
        )
        arguments, _ = json.loads(os.read(master, 10_000).splitlines()[-1])
    finally:
        os.close(master)
        os.close(slave)
    assert arguments == []


@pytest.mark.promise("WORK-12")
def test_without_a_workspace_a_fresh_copy_is_opened_and_earlier_ones_are_kept(
    project: Path,
) -> None:
    assert made(project) == (["serve"], str(project / ".try" / "cart-1"))
    worked_on = project / ".try" / "cart-1" / "cart.py"
    worked_on.write_text("mine\n")
    (project / ".try" / "cart-1" / "new.py").write_text("mine too\n")
    assert made(project, "TASK=fix it")[1] == str(project / ".try" / "cart")
    assert made(project) == (["serve"], str(project / ".try" / "cart-2"))
    assert made(project, "EXAMPLE=todo-js") == (["serve"], str(project / ".try" / "todo-js-1"))
    assert worked_on.read_text() == "mine\n"
    assert worked_on.with_name("new.py").exists()
    fresh = (project / ".try" / "cart-2" / "cart.py").read_bytes()
    assert fresh == (ROOT / "examples" / "cart" / "cart.py").read_bytes()


def test_how_to_open_a_folder_of_ones_own_is_said_in_one_line(project: Path) -> None:
    done = subprocess.run(
        ["make", "-s", "run"], cwd=project, capture_output=True, text=True, timeout=60, check=True
    )
    [said] = done.stderr.splitlines()
    assert str(project / ".try" / "cart-1") in said
    assert "make run WORKSPACE=FOLDER" in said
    assert str(project / ".venv" / "bin" / "handrail") in said


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
        ("@research quick: why?", project / ".try"),
        ("fix it", project / ".try"),
    ]
    missing = subprocess.run(
        [example, "bin/none"], cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert missing.returncode == 2
    assert "There is no program bin/none." in missing.stderr
