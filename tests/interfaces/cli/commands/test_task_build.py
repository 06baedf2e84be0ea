"""`handrail tasks build`: a task of the list as a verified build."""

from pathlib import Path

import pytest

from tests.interfaces.cli.commands.test_build import project as _project
from tests.interfaces.cli.program import run, script
from tests.pipelines.build import builds
from tests.pipelines.build.builds import COPIES, FIX, RIGHT, TASK, WRONG

project = _project


@pytest.mark.promise("TASK-19")
@pytest.mark.parametrize("repeats", [(), ("--every", "day", "--on", "today")])
def test_a_task_that_was_built_is_completed(project: Path, tmp_path: Path, repeats: tuple[str, ...]) -> None:
    run("tasks", "add", TASK, *repeats, cwd=project)
    done = run("tasks", "build", "bug", "--model", script(tmp_path, *builds.script([FIX])), cwd=project)
    if not COPIES:
        assert done.returncode == 1
        return
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("complete: double returns twice its number\n")
    assert "Done: 1 Fix the bug" in done.stdout
    assert (project / "calc.py").read_text() == RIGHT
    assert "nothing to do" in run("tasks", cwd=project).stdout.lower() or repeats
    if repeats:
        assert "done on" in (shown := run("tasks", "show", "1", cwd=project).stdout)
        assert "no day yet" not in shown


@pytest.mark.promise("TASK-19")
def test_a_task_whose_build_does_not_pass_its_checks_stays_open(project: Path, tmp_path: Path) -> None:
    run("tasks", "add", TASK, cwd=project)
    useless = {"path": "calc.py", "edits": [{"search": "number", "replace": "number ", "all": True}]}
    model = script(tmp_path, *builds.script([useless]))
    done = run("tasks", "build", "1", "--model", model, cwd=project)
    assert done.returncode != 0
    assert "Task 1 stays open." in done.stderr
    assert (project / "calc.py").read_text() == WRONG
    assert TASK in run("tasks", cwd=project).stdout
    run("tasks", "done", "1", cwd=project)
    refused = run("tasks", "build", "1", "--model", model, cwd=project)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Task 1 is done already." in refused.stderr
