"""The stored list: properties over any operations, several processes, undo, keys."""

import multiprocessing
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from handrail.protocol.errors import IdempotencyConflict, StorageFull, UsageProblem
from handrail.protocol.values import TaskFilter
from tests.project.source import ROOT
from tests.storage.backends import sqlite_of
from tests.tasks.lists import OPERATIONS, task_list

SEED: list[Any] = [
    {"title": "Buy milk"},
    {"title": "Call Zoë", "scheduled_for": "fri", "priority": "high"},
    {"title": "Stand-up", "scheduled_for": "2026-11-16", "recurrence": "weekdays", "time": "9:30"},
    {"title": "Rent", "scheduled_for": "2026-10-31", "recurrence": "monthly"},
]


@pytest.mark.promise("TASK-4")
@pytest.mark.promise("TASK-5")
@settings(max_examples=60, deadline=None)
@given(rounds=st.lists(OPERATIONS, min_size=1, max_size=3))
def test_a_dry_run_predicts_what_apply_does_and_undo_gives_back_the_same_bytes(
    rounds: list[list[Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, task_list(Path(folder)) as tasks:
        tasks.apply([*SEED, {"op": "complete_occurrence", "id": "3", "date": "2026-11-17"}])
        versions = []
        for operations in rounds:
            before, predicted = tasks.as_bytes(), tasks.dry_run(operations)
            assert tasks.as_bytes() == before
            applied = tasks.apply(operations)
            short = tuple(replace(each, ids=each.ids[:10]) for each in applied.report.results)
            assert replace(applied.report, results=short) == predicted
            assert (before != tasks.as_bytes()) == bool(applied.change_id)
            for result in applied.report.results:
                assert result.valid != bool(result.errors)
            if applied.change_id:
                versions.append(before)
        with task_list(Path(folder)) as again:
            assert again.as_bytes() == tasks.as_bytes()
        for before in reversed(versions):
            tasks.undo()
            assert tasks.as_bytes() == before


def test_all_that_was_applied_is_in_the_result_of_each_operation(tmp_path: Path) -> None:
    with task_list(tmp_path) as tasks:
        (made,) = tasks.apply([{"title": "Buy milk"}]).report.results
        assert made.after == tasks.get("1")
        (done,) = tasks.apply([{"op": "complete", "id": 1}]).report.results
        assert (done.before, done.after) == (made.after, tasks.get("1"))


@pytest.mark.promise("TASK-5")
def test_undo_goes_back_change_by_change_and_a_number_is_never_used_again(tmp_path: Path) -> None:
    with task_list(tmp_path) as tasks:
        first = tasks.apply([{"title": "A"}]).change_id
        tasks.apply([{"title": "B"}])
        with pytest.raises(UsageProblem, match="Undo the later change first"):
            tasks.undo(first)
        assert [each.id for each in tasks.undo().changes] == ["2"]
        assert tasks.undo(first).change_id == first
        with pytest.raises(UsageProblem, match="no change of the task list to undo"):
            tasks.undo()
        tasks.apply([{"title": "C"}])
        assert [task.id for task in tasks.all()] == ["3"]


@pytest.mark.promise("TASK-6")
def test_a_key_applies_once_also_after_a_restart_and_not_with_other_operations(tmp_path: Path) -> None:
    with task_list(tmp_path) as tasks:
        first = tasks.apply([{"title": "A"}], key="k")
    with task_list(tmp_path, now=time.time()) as tasks:
        again = tasks.apply([{"title": "A"}], key="k")
        assert again.repeated
        assert (again.report, again.change_id) == (first.report, first.change_id)
        with pytest.raises(IdempotencyConflict, match="already used for other operations"):
            tasks.apply([{"title": "B"}], key="k")
        failed = tasks.apply([{"op": "delete", "id": 9}], key="wrong")
        assert tasks.apply([{"op": "delete", "id": 9}], key="wrong").report == failed.report
        assert len(tasks.all()) == 1
    with task_list(tmp_path, now=time.time() + 601) as tasks:
        assert not tasks.apply([{"title": "A"}], key="k").repeated
        assert len(tasks.all()) == 2


def apply_in_process(folder: str, key: str, number: int) -> tuple[str, bool]:
    with task_list(Path(folder), now=time.time()) as tasks:
        for each in range(5):
            tasks.apply([{"title": f"{number}.{each}"}])
        applied = tasks.apply([{"title": "Once"}], key=key)
        return applied.change_id, applied.repeated


@pytest.mark.promise("TASK-6")
def test_processes_that_apply_at_once_lose_nothing_and_apply_a_key_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(3, mp_context=context) as pool:
        ends = list(pool.map(apply_in_process, [str(tmp_path)] * 3, ["k"] * 3, range(3)))
    with task_list(tmp_path) as tasks:
        found = tasks.all()
    assert len({change for change, _ in ends}) == 1
    assert sorted(repeated for _, repeated in ends) == [False, True, True]
    assert sorted(task.title for task in found) == sorted(
        ["Once", *(f"{number}.{each}" for number in range(3) for each in range(5))]
    )
    assert [task.id for task in found] == [str(number) for number in range(1, 17)]


APPLIES_FOR_EVER = """
import itertools, sys, time
from pathlib import Path
from tests.tasks.lists import task_list
with task_list(Path(sys.argv[1]), now=time.time()) as tasks:
    for number in itertools.count():
        tasks.apply([{"title": f"{number} a"}, {"title": f"{number} b"}], key=f"k{number}")
        print(number, flush=True)
"""


@pytest.mark.promise("TASK-6")
@pytest.mark.parametrize("lines", [1, 7])
def test_a_process_killed_while_it_applies_leaves_whole_changes_and_its_keys(
    tmp_path: Path, lines: int
) -> None:
    words = [sys.executable, "-c", APPLIES_FOR_EVER, str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for _ in range(lines):
            process.stdout.readline()
        process.kill()
        said = lines + len(process.stdout.readlines())
    with task_list(tmp_path, now=time.time()) as tasks:
        found = [task.title for task in tasks.all()]
        assert len(found) >= 2 * said
        assert found == [f"{number} {half}" for number in range(len(found) // 2) for half in "ab"]
        for number in range(len(found) // 2):
            operations = [{"title": f"{number} a"}, {"title": f"{number} b"}]
            assert tasks.apply(operations, key=f"k{number}").repeated
        tasks.undo()
        assert len(tasks.all()) == len(found) - 2


@pytest.mark.promise("TASK-6")
def test_a_full_disk_changes_nothing_and_the_same_key_applies_once_there_is_room(tmp_path: Path) -> None:
    with task_list(tmp_path) as tasks:
        tasks.apply([{"title": "Before"}])
        before = tasks.as_bytes()
        connection = sqlite_of(tasks._log)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        large = [{"title": f"Large {number}", "notes": "x" * 20_000} for number in range(20)]
        with pytest.raises(StorageFull, match="Free some disk space"):
            tasks.apply(large, key="k")
        assert tasks.as_bytes() == before
        connection.execute("PRAGMA max_page_count = 1000000")
        assert not tasks.apply(large, key="k").repeated
        assert tasks.apply(large, key="k").repeated
        assert len(tasks.all()) == 21


def test_a_list_with_many_changes_is_read_from_a_snapshot_and_the_events_after_it(tmp_path: Path) -> None:
    with task_list(tmp_path) as tasks:
        for number in range(230):
            tasks.apply([{"title": f"Task {number}"}], key=f"k{number}")
        tasks.undo()
        expected = tasks.as_bytes()
    with task_list(tmp_path, now=time.time()) as tasks:
        assert tasks._log.snapshot("workspace", 1)
        assert tasks.as_bytes() == expected
        assert tasks.apply([{"title": "Task 3"}], key="k3").repeated
        tasks.undo()
        assert len(tasks.all()) == 228


@pytest.mark.promise("TASK-7")
def test_a_search_finds_words_in_any_case_and_without_accents_the_title_first(tmp_path: Path) -> None:
    with task_list(tmp_path) as tasks:
        tasks.apply(
            [
                {"title": "Dinner", "notes": "with zoe"},
                {"title": "Call Zoë"},
                {"title": "Zoe's present", "completed": True},
                {"title": "Azoel"},
            ]
        )
        assert [task.id for task in tasks.search("ZOE")] == ["2", "4", "1", "3"]
        assert [task.id for task in tasks.search("call zo")] == ["2"]
        assert tasks.search("  ") == []
        tasks.apply([{"title": f"Chapter {number}"} for number in (4, 40, 14)])
        assert [task.title for task in tasks.search("chapter 4")] == ["Chapter 4", "Chapter 40", "Chapter 14"]


@pytest.mark.promise("TASK-7")
def test_a_model_is_shown_the_tasks_of_the_filter_or_this_week_first_and_fifty_at_most(
    tmp_path: Path,
) -> None:
    with task_list(tmp_path) as tasks:
        tasks.apply([{"title": f"Later {number}", "date": "2027-05-01"} for number in range(80)])
        tasks.apply(SEED)
        shown, total = tasks.focused()
        assert (len(shown), total) == (50, 84)
        assert [task.title for task in shown[:2]] == ["Stand-up", "Call Zoë"]
        assert "Rent" in [task.title for task in shown]
        (first, second, *_) = tasks.focused(message="move the rent, and task 17, to friday").tasks
        assert [first.id, second.title] == ["17", "Rent"]
        (rent,) = tasks.focused(TaskFilter(text="rent")).tasks
        assert rent.title == "Rent"
        week = tasks.find(TaskFilter(scheduled_range=("2026-11-16", "2026-11-22")))
        assert sorted(task.title for task in week) == ["Call Zoë", "Stand-up"]
        assert [task.title for task in tasks.find(TaskFilter(repeating=True))] == ["Stand-up", "Rent"]
