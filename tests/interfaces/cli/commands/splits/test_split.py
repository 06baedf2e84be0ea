"""`handrail split` and `handrail splits`: plan, start, killed at random moments, and taken back."""

import json
import random
from pathlib import Path

import pytest

from handrail.app.splits.report import SubtaskRow
from handrail.interfaces.cli.render.split_lines import subtask_line
from handrail.interfaces.cli.render.styles import plain
from handrail.protocol.events import ChangeApplied, SubtaskDone
from handrail.sessions.session import event_from_row
from tests.app.splits.splitting import CHECKS, answer, contents, edited, project
from tests.interfaces.cli.commands.test_do import kill_when, opened_log
from tests.interfaces.cli.program import run, script, terminal
from tests.pipelines.build.builds import COPIES
from tests.tools.sandbox.machine import offer
from tests.verification.projects import best_sandbox, write

COUNT = 12
ONE = {"task": "End one", "subtasks": [{"id": "one", "instruction": "End.", "files": ["m00.py"]}]}
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


def test_split_on_workers_without_a_database_is_refused_before_it_is_planned(
    root: Path, tmp_path: Path
) -> None:
    model = script(tmp_path, *ANSWERS)
    refused = run("--model", model, "split", "End them", "--files", "*.py", "--workers", cwd=root)
    assert refused.returncode == 2
    assert "`handrail config set database.url " in refused.stderr
    assert "End them" not in run("splits", cwd=root).stdout


def test_failed_subtask_has_no_clock_because_none_is_known() -> None:
    row = SubtaskRow("a", "Do it.", "failed", (), (), "main", 2, 0.0, 392, 0.0, "It was not used.", (), "")
    assert plain(subtask_line(row, 79)) == "failed    a  392 tokens  try 2: It was not used."


def count_of_events(root: Path) -> int:
    with opened_log(root) as log:
        return sum(head.seq for head in log.heads("session:"))


@pytest.mark.promise("SPLIT-3")
def test_split_killed_at_random_moments_ends_as_if_it_had_not_been(root: Path, tmp_path: Path) -> None:
    model, dice = script(tmp_path, *ANSWERS), random.Random(23)
    plan = ("--model", model, "split", "End them", "--files", "*.py", "--granularity", "fine", "--json")
    name = json.loads(run(*plan, cwd=root).stdout)["session_id"]
    for _ in range(4):
        until = count_of_events(root) + dice.randint(2, 9)
        kill_when(root, lambda: count_of_events(root) >= until, "--model", model, "splits", "start", name)  # noqa: B023
    run("--model", model, "splits", "start" if COPIES else "accept", name, cwd=root)
    report = json.loads(run("splits", "show", name, "--json", cwd=root).stdout)
    assert (report["status"], report["counts"]["done"]) == ("complete", COUNT)
    assert report["tokens"] == COUNT * 120
    with opened_log(root) as log:
        found = [event_from_row(row).event for row in log.read(f"session:{name}")]
    done = [each.subtask_id for each in found if isinstance(each, SubtaskDone)]
    assert len(done) == len(set(done)) == COUNT
    assert sum(isinstance(each, ChangeApplied) for each in found) == 1
    assert all(f"END = {n}0" in (root / f"m{n:02}.py").read_text() for n in range(COUNT))


@pytest.mark.promise("SPLIT-10")
def test_plan_is_edited_in_the_editor_before_it_starts(root: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/m00.py/m01.py/' \"$1\"\n")
    editor.chmod(0o755)
    (tmp_path / "plan.json").write_text(json.dumps(ONE))
    model = script(tmp_path, *ANSWERS)
    call = ("--model", model, "split", "--plan", str(tmp_path / "plan.json"), "--edit", "--start", "--json")
    done = json.loads(run(*call, cwd=root, EDITOR=str(editor), VISUAL="").stdout)
    assert [row["files"] for row in done["subtasks"]] == [["m01.py"]]
    (tmp_path / "plan.json").write_text('{"task": "x", "subtasks": [{"id": "a b", "instruction": ""}]}')
    refused = run("split", "--plan", str(tmp_path / "plan.json"), cwd=root)
    assert (refused.returncode, "subtasks.0.id" in refused.stderr) == (2, True), refused.stderr


@pytest.mark.promise("SPLIT-11")
def test_checklist_in_parallel_asks_first_and_ticks_with_auto(root: Path, tmp_path: Path) -> None:
    (root / "todo.md").write_text("- [ ] End m00.py\n- [ ] End m01.py\n")
    model = script(tmp_path, *ANSWERS)
    asked = run("--model", model, "do", "todo.md", "--parallel", cwd=root)
    assert (asked.returncode, "splits start" in asked.stderr) == (0, True)
    done = run("--model", model, "do", "todo.md", "--parallel", "--auto", "--json", cwd=root)
    if COPIES:
        assert json.loads(done.stdout)["status"] == "complete"
        assert (root / "todo.md").read_text() == "- [x] End m00.py\n- [x] End m01.py\n"
    wrong = run("--model", model, "do", "todo.md", "--parallel", "--item", "1", cwd=root)
    assert (wrong.returncode, "--item" in wrong.stderr) == (2, True)


@pytest.mark.promise("SPLIT-11")
def test_checklist_in_parallel_takes_the_options_of_a_plan(root: Path, tmp_path: Path) -> None:
    (root / "todo.md").write_text("".join(f"- [ ] End m0{n}.py\n" for n in range(3)))
    model = script(tmp_path, *ANSWERS)
    call = ("--model", model, "do", "todo.md")
    limits = {
        "parallel": 2,
        "tries": 1,
        "tokens": 90000,
        "usd": 1.5,
        "subtask_tokens": 30000,
        "subtask_usd": 0.5,
    }
    given = "--at-once 2 --tries 1 --max-tokens 90000 --max-usd 1.5 --subtask-tokens 30000 --subtask-usd 0.5"
    given = f"{given} --strategy sequential --max 2"
    planned = json.loads(run(*call, "--parallel", *given.split(), "--json", cwd=root).stdout)
    plan = planned["plan"]
    assert (plan["strategy"], plan["limits"]) == ("sequential", limits)
    assert [each["files"] for each in plan["subtasks"]] == [["m00.py"], ["m01.py"]]
    (tmp_path / "plan.json").write_text(json.dumps(plan | {"subtasks": plan["subtasks"][:1]}))
    start = ("splits", "start", planned["session_id"], "--plan", str(tmp_path / "plan.json"), "--json")
    assert json.loads(run("--model", model, *start, cwd=root).stdout)["counts"]["done"] == 1
    if COPIES:
        assert (root / "todo.md").read_text().startswith("- [x] End m00.py\n- [ ] End m01.py\n")
    for wrong in (("--strategy", "sequential"), ("--edit",), ("--at-once", "2")):
        assert "Add --parallel" in run(*call, *wrong, cwd=root).stderr
    for wrong in (("--max-steps", "3"), ("--workers",)):
        assert run(*call, "--parallel", *wrong, cwd=root).returncode == 2


@pytest.mark.promise("SPLIT-10")
def test_another_strategy_is_chosen_before_the_plan_starts(root: Path, tmp_path: Path) -> None:
    words = ("split", "End them", "--files", "m0[01].py", "--granularity", "fine")
    with terminal("--model", script(tmp_path, *ANSWERS), *words, cwd=root) as talk:
        talk.expect("* by dependencies")
        talk.expect("graph, sequential, all-at-once?")
        talk.type("seq\r")
        talk.expect("* one by one")
        talk.expect("[leave]")
        talk.type("start\r")
        talk.expect("applied as one change set" if COPIES else "unverified")
        assert talk.end() == (0 if COPIES else 5)
