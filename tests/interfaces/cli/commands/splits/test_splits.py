"""`handrail splits`: a split that runs is told from elsewhere and by Ctrl-C; its progress; one that waits."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.app.splits.splitting import CHECKS, answer, edited
from tests.interfaces.cli.program import DEADLINE, command, environment, run, script, terminal
from tests.pipelines.build.builds import COPIES
from tests.system.worker_fleet import HeldModel, project, settings
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

COLOURS = re.compile(r"\x1b\[\d+(;\d+)*m")
ENDED = (0, "complete") if COPIES else (5, "unverified")
CLASHING = {
    "task": "Change it",
    "subtasks": [
        {"id": "first", "instruction": "Do first.", "files": ["m00.py"]},
        {"id": "second", "instruction": "Do second.", "files": ["m00.py"]},
    ],
}
SIDES = [
    answer("Do first.", edited("m00.py", "ONE = 0", "ONE = 'a'")),
    answer("Do second.", edited("m00.py", "ONE = 0", "ONE = 'b'")),
]


@pytest.fixture
def model() -> Iterator[HeldModel]:
    found = HeldModel()
    with found.server:
        yield found
        found.go.set()


@pytest.fixture
def root(tmp_path: Path, home: Path, model: HeldModel) -> Path:
    offer(best_sandbox())
    settings(model, home / "handrail")
    return project(tmp_path / "work", 3)


def planned(root: Path) -> str:
    words = ("split", "End them", "--files", "*.py", "--granularity", "fine", "--strategy", "sequential")
    return str(told(*words, cwd=root)["session_id"])


def told(*arguments: str, cwd: Path, status: int = 0) -> dict[str, Any]:
    """What a command prints as JSON."""
    done = run(*arguments, "--json", cwd=cwd)
    assert done.returncode == status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def started(root: Path, model: HeldModel, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that waits for the model's first answer."""
    with subprocess.Popen(
        command(*arguments),
        cwd=root,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert model.came.wait(DEADLINE)
            yield process
        finally:
            process.kill()


@pytest.mark.promise("SPLIT-8")
@pytest.mark.promise("SPLIT-15")
def test_split_is_paused_from_elsewhere_and_resumed(root: Path, model: HeldModel) -> None:
    name = planned(root)
    with started(root, model, "splits", "start", name, "--json") as process:
        paused = run("splits", "pause", name, "--json", cwd=root)
        assert json.loads(paused.stdout)["held"]
        assert "another Handrail runs it, and has been told" in paused.stderr
        again = told("splits", "retry", name, "1-m00.py", cwd=root)
        assert (again["session_id"], again["held"]) == (name, True)
        model.go.set()
        out, _ = process.communicate(timeout=DEADLINE)
    report = json.loads(out)
    # The retry came after the pause, and goes on.
    assert (process.returncode, report["status"]) == ENDED
    assert report["counts"]["done"] == 3


@pytest.mark.promise("SPLIT-8")
def test_first_ctrl_c_lets_what_runs_end_and_the_second_stops_at_once(root: Path, model: HeldModel) -> None:
    name = planned(root)
    with started(root, model, "splits", "start", name, "--json") as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr
        assert "pauses when what runs has ended" in process.stderr.readline()
        model.go.set()
        out, _ = process.communicate(timeout=DEADLINE)
    report = json.loads(out)
    assert (process.returncode, report["status"]) == (3, "paused: user")
    assert (report["counts"]["done"], report["counts"]["waiting"]) == (1, 2)
    model.came.clear()
    model.go.clear()
    with started(root, model, "splits", "resume", name) as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr
        assert "pauses when what runs has ended" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    model.go.set()
    done = told("splits", "resume", name, cwd=root, status=ENDED[0])
    assert (done["status"], done["counts"]["done"]) == (ENDED[1], 3)


@pytest.mark.promise("SPLIT-8")
@pytest.mark.promise("SPLIT-15")
def test_subtask_is_left_out_one_is_tried_again_and_all_are_cancelled(root: Path, model: HeldModel) -> None:
    model.go.set()
    name = planned(root)
    left = told("splits", "cancel", name, "3-m02.py", cwd=root)
    assert (left["counts"]["cancelled"], left["counts"]["waiting"]) == (1, 2)
    (root / "m00.py").write_text("ONE = 0\n")  # without what is searched for, so it fails
    failed = told("splits", "start", name, cwd=root, status=1)
    assert failed["status"] == "paused: failed"
    assert "retry" in run("splits", "show", name, cwd=root).stdout
    again = told("splits", "retry", name, "1-m00.py", cwd=root, status=1)
    assert again["subtasks"][0]["tokens"] > failed["subtasks"][0]["tokens"]
    cancelled = run("splits", "cancel", name, cwd=root)
    assert (cancelled.returncode, "cancelled" in cancelled.stdout) == (0, True)
    assert "new" not in (root / "m01.py").read_text()
    assert told("splits", "show", name, cwd=root)["status"] == "cancelled"
    unknown = run("splits", "cancel", name, "none", "--json", cwd=root)
    assert (unknown.returncode, unknown.stdout) == (2, "")


@pytest.mark.promise("SPLIT-2")
@pytest.mark.promise("SPLIT-15")
@pytest.mark.parametrize("how", [("--take", "theirs"), ("--text", "-"), ("--text", "crlf")])
def test_conflict_is_settled_and_the_lines_after_it_stay_lines(
    how: tuple[str, str], root: Path, tmp_path: Path, home: Path
) -> None:
    write(home / "handrail", {"config.toml": CHECKS})
    end = "\r\n" if how[1] == "crlf" else "\n"
    (root / "m00.py").write_bytes(f"ONE = 0{end}TWO = 2{end}".encode())
    (tmp_path / "plan.json").write_text(json.dumps(CLASHING))
    model = script(tmp_path, *SIDES)
    name = told("split", "--plan", str(tmp_path / "plan.json"), cwd=root)["session_id"]
    found = told("--model", model, "splits", "start", name, cwd=root, status=6)
    (conflict,) = found["conflicts"]
    words = ("splits", "settle", name, conflict["id"], *how[:1], how[1].replace("crlf", "-"), "--json")
    settled = run(*words, cwd=root, stdin="ONE = 'mine'")
    assert json.loads(settled.stdout)["conflicts"] == []
    done = run("--model", model, "splits", "resume" if COPIES else "accept", name, cwd=root)
    if not COPIES:
        done = run("--model", model, "splits", "accept", name, cwd=root)
    assert done.returncode == 0, done.stderr
    value = "'b'" if how[1] == "theirs" else "'mine'"
    assert (root / "m00.py").read_bytes() == f"ONE = {value}{end}TWO = 2{end}".encode()


@pytest.mark.promise("SPLIT-16")
@pytest.mark.parametrize("colour", ["", "1"])
def test_terminal_shows_bars_with_what_each_subtask_waits_on(
    colour: str, root: Path, model: HeldModel
) -> None:
    name = planned(root)
    with terminal("splits", "start", name, cwd=root, NO_COLOR=colour) as shown:
        shown.expect("=" * 10 + "." * 20 + " 0/3, 1 running")
        shown.expect("running   1-m00.py  ")
        shown.expect("waiting   2-m01.py  waiting on 1-m00.py")
        shown.expect("waiting   3-m02.py  waiting on 2-m01.py")
        model.go.set()
        shown.expect("done      1-m00.py  ")
        shown.expect("120 tokens  $0.0001")
        shown.expect("#" * 30 + " 3/3")
        assert shown.end() == ENDED[0]
    assert bool(COLOURS.search(shown.raw)) == (not colour)


@pytest.mark.promise("SPLIT-16")
def test_without_a_terminal_each_ended_subtask_is_a_line(root: Path, model: HeldModel) -> None:
    model.go.set()
    done = run("splits", "start", planned(root), cwd=root)
    assert "\x1b" not in done.stderr + done.stdout
    ended = re.findall(r"^done +(\S+)  .*120 tokens", done.stderr, re.MULTILINE)
    assert ended == ["1-m00.py", "2-m01.py", "3-m02.py"]
    assert "done " in done.stdout
