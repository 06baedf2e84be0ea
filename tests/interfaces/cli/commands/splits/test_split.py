"""`handrail split` and `handrail splits`: plan, start, killed at random moments, and taken back."""

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from tests.app.splits.splitting import CHECKS, answer, contents, edited, project
from tests.interfaces.cli.program import DEADLINE, command, environment, run, script
from tests.pipelines.build.builds import COPIES
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

COUNT = 12
ANSWERS = [
    answer(f"### m{n:02}.py", edited(f"m{n:02}.py", "END = 0", f"END = {n}0"), chunk_delay_ms=5)
    for n in range(COUNT)
]


@pytest.fixture
def root(tmp_path: Path, home: Path) -> Path:
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": CHECKS})
    return project(tmp_path / "work", COUNT)


@pytest.mark.promise("SPLIT-10")
@pytest.mark.promise("SPLIT-1")
def test_split_is_planned_started_and_taken_back_by_one_undo(root: Path, tmp_path: Path) -> None:
    before = contents(root)
    model = script(tmp_path, *ANSWERS)
    planned = run("--model", model, "split", "End them", "--files", "*.py", "--json", cwd=root)
    found = json.loads(planned.stdout)
    assert (planned.returncode, contents(root)) == (0, before)
    assert [each["strategy"] for each in found["estimates"]] == ["graph", "sequential", "all_at_once"]
    (tmp_path / "plan.json").write_text(json.dumps(found["plan"] | {"task": "All of them"}))
    name = found["session_id"]
    start = ("--model", model, "splits", "start", name, "--plan", str(tmp_path / "plan.json"))
    done = run(*start, cwd=root)
    if not COPIES:
        assert done.returncode == 5
        done = run("--model", model, "splits", "accept", name, cwd=root)
    assert done.returncode == 0, done.stderr
    assert "applied as one change set" in done.stdout
    assert contents(root) != before
    assert "complete" in run("splits", cwd=root).stdout
    assert run("undo", "--session", name, cwd=root).returncode == 0
    assert contents(root) == before


@pytest.mark.promise("SPLIT-3")
def test_split_killed_at_random_moments_ends_as_if_it_had_not_been(root: Path, tmp_path: Path) -> None:
    model, dice = script(tmp_path, *ANSWERS), random.Random(23)
    plan = ("--model", model, "split", "End them", "--files", "*.py", "--granularity", "fine", "--json")
    name = json.loads(run(*plan, cwd=root).stdout)["session_id"]
    for _ in range(4):
        process = subprocess.Popen(
            command("--model", model, "splits", "start", name),
            cwd=root,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(timeout=dice.uniform(0.3, 1.2))  # the moment is what this test is about
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=DEADLINE)
    action = "start" if COPIES else "accept"
    shown = run("--model", model, "splits", "show", name, "--json", cwd=root)
    if json.loads(shown.stdout)["status"] != "complete":
        run("--model", model, "splits", "start", name, "--json", cwd=root)
    if not COPIES:
        run("--model", model, "splits", action, name, "--json", cwd=root)
    report = json.loads(run("splits", "show", name, "--json", cwd=root).stdout)
    assert (report["status"], report["counts"]["done"]) == ("complete", COUNT)
    assert report["tokens"] == COUNT * 120
    changes = run("changes", "--session", name, cwd=root).stdout
    assert changes.count("applied") <= 1
    assert all(f"END = {n}0" in (root / f"m{n:02}.py").read_text() for n in range(COUNT))
