"""`handrail do`: the items of a checklist as verified builds, killed and resumed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail.config.places import find_places, workspace_folder
from handrail.protocol.events import ChangeApplied, ItemStarted
from handrail.sessions.session import event_from_row
from handrail.sessions.workspace_events import read_workspace
from handrail.storage.event_log import Log
from tests.interfaces.cli.program import DEADLINE, command, environment, run, script, terminal
from tests.pipelines.build.builds import COPIES, ITEM_CHECKS, PLAN, item_script, whole
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

CHECKLIST = b"""\
# Plan\r
\r
Words with a box in `- [ ] code` stay.\r
## Phase 1\r
- [x] Add zero.py\r
- [ ] Add one.py\r
* [ ]\tAdd two.py  \r
- [~] Add later.py\r
\r
## Phase 2\r
- [ ] Add three.py\r
- [ ] Add four.py\r
- [-] Add never.py\r
- [ ] Add five.py"""
SHORT = {**PLAN, "objective": "short"}
ASKING = {**PLAN, "escalation": {"kind": "ambiguous", "reason": "Which three?"}}


FIVE = [
    *item_script("Add one.py", [whole("one.py", "ONE = 1\n")]),
    *item_script("Add two.py", [whole("two.py", "WRONG = 2\n")], [whole("two.py", "TWO = 2\n")]),
    *item_script("Add three.py", plan=ASKING),
    *item_script("Add four.py", [whole("four.py", "FOUR = 4\n")]),
    *item_script("Add five.py", plan=SHORT),
]


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A project with a checklist, whose user has set up one check."""
    offer(best_sandbox())
    write(home / "handrail", {"config.toml": ITEM_CHECKS})
    root = write(tmp_path / "work", {"zero.py": "ZERO = 0\n"})
    (root / "plan.md").write_bytes(CHECKLIST)
    return root


@contextmanager
def opened_log(project: Path) -> Iterator[Log]:
    log = Log(workspace_folder(find_places(os.environ), project))
    try:
        yield log
    finally:
        log.close()


def started_items(project: Path) -> list[ItemStarted]:
    if not (workspace_folder(find_places(os.environ), project) / "log.db").exists():
        return []
    with opened_log(project) as log:
        return [one.event for one in read_workspace(log) if isinstance(one.event, ItemStarted)]


def kill_when(project: Path, when: Callable[[], bool], *arguments: str) -> None:
    """Run it until something is true, then kill it."""
    process = subprocess.Popen(
        command(*arguments),
        cwd=project,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + DEADLINE
        while not when():
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=DEADLINE)


def ticked(*names: str) -> bytes:
    data = CHECKLIST
    for name in names:
        for mark in (b"- [ ] ", b"* [ ]\t"):
            data = data.replace(
                mark + f"Add {name}.py".encode(), mark.replace(b" ]", b"x]") + f"Add {name}.py".encode()
            )
    return data


@pytest.mark.promise("DO-1")
@pytest.mark.promise("DO-2")
def test_five_items_that_end_in_five_ways_are_right_after_two_kills(project: Path, tmp_path: Path) -> None:
    model = script(tmp_path, *FIVE)
    call = ("do", "plan.md", "--auto", "--keep-going", "--model", model, "--json")
    if not COPIES:
        done = run(*call, cwd=project)
        assert (done.returncode, json.loads(done.stdout)["failed"]) == (1, 5)
        return
    kill_when(project, lambda: (project / "plan.md").read_bytes() != CHECKLIST, *call)
    kill_when(project, lambda: len(started_items(project)) == 3, *call)
    (project / "no-tool").touch()  # from now on the check cannot run
    done = run(*call, cwd=project)
    report = json.loads(done.stdout)
    states = {each["text"]: each["state"] for each in report["items"]}
    assert states == {
        "Add one.py": "complete",
        "Add two.py": "complete",
        "Add three.py": "escalated",
        "Add four.py": "unverified",
        "Add five.py": "failed",
    }
    counted = [report[each] for each in ("attempted", "complete", "unverified", "failed", "escalated")]
    assert (counted, report["open"], report["ended"]) == ([5, 2, 1, 1, 1], 3, "done")
    assert [each["corrections"] for each in report["items"]] == [0, 1, 0, 0, 0]
    assert (report["cost_usd"], report["tokens"] > 0, report["seconds"] > 0) == (0.0, True, True)
    assert (done.returncode, report["exit_status"]) == (1, 1)
    assert (project / "plan.md").read_bytes() == ticked("one", "two")
    tree = {path.name: path.read_text() for path in project.glob("*.py")}
    assert tree == {"zero.py": "ZERO = 0\n", "one.py": "ONE = 1\n", "two.py": "TWO = 2\n"}
    # Nothing was done twice: each item has one session, and each complete one is one change set.
    begun = started_items(project)
    assert [each.item.text for each in begun] == list(states)
    with opened_log(project) as log:
        applied = [
            event
            for each in begun
            for row in log.read(f"session:{each.session_id}")
            if isinstance(event := event_from_row(row).event, ChangeApplied)
        ]
    assert len(applied) == 2


@pytest.mark.promise("BUILD-18")
def test_files_of_an_unverified_item_are_applied_on_the_users_word_without_a_tick(
    project: Path, tmp_path: Path
) -> None:
    (project / "no-tool").touch()  # the check cannot run
    model = script(tmp_path, *FIVE)
    done = run("do", "plan.md", "--auto", "--max", "1", "--model", model, cwd=project)
    if not COPIES:
        assert done.returncode == 1
        return
    advice = next(row for row in done.stdout.splitlines() if "--accept" in row).split()
    accepted = run(*advice[1:4], cwd=project)
    assert accepted.returncode == 5, accepted.stderr
    assert (project / "one.py").read_text() == "ONE = 1\n"
    assert (project / "plan.md").read_bytes() == CHECKLIST


@pytest.mark.promise("DO-3")
def test_in_a_terminal_each_item_is_asked_and_ctrl_c_stops_after_the_item(
    project: Path, tmp_path: Path
) -> None:
    slow = [each | {"chunk_delay_ms": 20} for each in FIVE]
    model = script(tmp_path, *slow)
    with terminal("do", "plan.md", "--model", model, cwd=project) as talk:
        talk.expect("Build item 2? 5 left")
        talk.type("no\n")
        talk.expect("Build item 3? 4 left")
        talk.type("yes\n")
        talk.expect("checks before the task")
        talk.type("\x03")
        if COPIES:
            talk.expect("stops after this item")
            talk.expect("1 attempted: 1 complete; 4 open")
            talk.expect("the same command goes on")
            assert talk.end() == 130
            assert (project / "plan.md").read_bytes() == ticked("two")
    shown = run("status", "--json", cwd=project)
    status = json.loads(shown.stdout)
    assert [each["path"] for each in status["checklists"]] == ["plan.md"]
    assert status["checklists"][0]["open"][0]["text"] == "Add one.py"
    if COPIES:
        assert [(each["state"], each["task"]) for each in status["builds"]] == [("complete", "Add two.py")]
        told = run("status", cwd=project).stdout
        assert "complete" in told
        assert "4 open" in told
