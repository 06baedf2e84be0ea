"""What operations mean and do: normal form, validation with hints, dry run."""

import re
from pathlib import Path
from typing import Any

import pytest

from handrail.protocol.task import OperationResult
from tests.tasks.lists import task_list

MANY = [{"op": "create", "title": f"Chore {number}"} for number in range(60)]


def one(folder: Path, *operations: object) -> OperationResult:
    """The result of the last operation, after the others were applied."""
    with task_list(folder) as tasks:
        tasks.apply(list(operations[:-1]))
        return tasks.dry_run([operations[-1]]).results[0]


MILK = {"title": "Buy milk"}
GYM = {"title": "Gym", "recurrence": "every monday"}


@pytest.mark.promise("TASK-2")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"title": "Half \ud83d"}, {"op": "create", "title": "Half ?"}),
        ({"title": "  Buy   milk "}, {"op": "create", "title": "Buy milk"}),
        (
            {"action": "add", "name": "A", "dueDate": "fri"},
            {"op": "create", "title": "A", "scheduled_for": "2026-11-20"},
        ),
        ({"id": 1, "done": "yes"}, {"op": "complete", "id": "1"}),
        ({"op": "mark done", "id": "#1"}, {"op": "complete", "id": "1"}),
        ({"op": "delete", "id": "buy MILK"}, {"op": "delete", "id": "1"}),
        ({"op": "delete", "id": "1 Buy milk"}, {"op": "delete", "id": "1"}),
        (
            {"op": "move", "taskId": "1", "changes": {"date": "tomorrow"}},
            {"op": "update", "id": "1", "scheduled_for": "2026-11-19"},
        ),
        (
            {"id": 1, "timeOfDay": "7pm", "priority": "urgent"},
            {"op": "update", "id": "1", "time": "19:00", "priority": "high"},
        ),
        (
            {"op": "update", "where": {"status": "open"}, "priority": 1},
            {"op": "bulk_update", "where": {"completed": False}, "priority": "high"},
        ),
        (
            {"op": "remove", "filter": {"range": ["today", "sun"]}},
            {"op": "bulk_delete", "where": {"scheduled_range": ["2026-11-18", "2026-11-22"]}},
        ),
        (
            {"op": "complete", "id": 2, "date": "mon"},
            {"op": "complete_occurrence", "id": "2", "date": "2026-11-23"},
        ),
        (
            {"type": "habit", "title": "Run", "repeat": {"type": "weekly", "interval": 2}, "date": "mon"},
            {
                "op": "create",
                "title": "Run",
                "scheduled_for": "2026-11-23",
                "recurrence": {"type": "every_n_days", "days": 14, "until": ""},
                "kind": "habit",
            },
        ),
        (
            {"title": "Run", "every": "mondays", "until": "1 dec"},
            {
                "op": "create",
                "title": "Run",
                "recurrence": {"type": "weekly", "days": 1, "until": "2026-12-01"},
                "scheduled_for": "2026-11-23",
            },
        ),
    ],
)
def test_an_operation_is_understood_as_it_was_meant(tmp_path: Path, given: Any, meant: Any) -> None:
    assert one(tmp_path, MILK, GYM, given).op == meant


@pytest.mark.promise("TASK-4")
@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"op": "create"}, "needs a title"),
        ({"op": "update", "id": 7, "priority": "low"}, "There is no task 7"),
        ({"op": "update", "id": "milk", "priority": "low"}, r"Did you mean 1 \(Buy milk\)\?"),
        ({"op": "update", "id": 1}, "Say what changes"),
        ({"op": "update", "id": 1, "title": "Buy milk"}, "already like this"),
        ({"op": "update", "id": 1, "date": "whenever"}, "'whenever' is not a date: write it as"),
        ({"op": "update", "id": 1, "recurrence": "daily"}, "needs a date from which it repeats"),
        ({"op": "update", "id": 2, "date": None}, "needs a date from which it repeats"),
        ({"op": "update", "id": 2, "until": "2026-11-01", "recurrence": "daily"}, "It would never occur"),
        ({"op": "update", "id": 1, "recurrence": "hourly"}, "write none, daily"),
        ({"op": "complete", "id": 2}, "use complete_occurrence"),
        ({"op": "update", "id": 2, "completed": True}, "use complete_occurrence"),
        ({"op": "complete_occurrence", "id": 1}, "does not repeat: use complete"),
        ({"op": "complete_occurrence", "id": 2, "date": "fri"}, "After that it occurs on 2026-11-23"),
        ({"op": "bulk_delete", "where": {}}, "`where` has no condition"),
        ({"op": "bulk_delete", "where": {"colour": "red"}}, "`where` has no 'colour'"),
        ({"op": "bulk_delete", "where": {"ids": [1, 9]}}, "There is no task 9"),
        ({"op": "bulk_delete", "where": {"text": "yacht"}}, "No task matches"),
        ({"op": "bulk_complete", "where": {"completed": False}}, "Task 2: .* use complete_occurrence"),
        ({"op": "bulk_update", "where": {"completed": False}, "title": "x"}, "one by one"),
        ({"op": "explode"}, "There is no operation 'explode'"),
        ({"op": "delete", "id": "\ud800"}, r"There is no task \?"),
        ({"op": "update", "id": 1, "date": "0001-01-01T00:00:00+14:00"}, "is not a date"),
        ({"op": "update", "id": 1, "date": "9999-12-31T23:59:59-14:00"}, "is not a date"),
        ({"op": "create", "id": "9" * 5_000}, "needs a title"),
        ("delete all", "An operation is an object"),
        ({"title": "x" * 301}, "more than 300 characters"),
    ],
)
def test_an_invalid_operation_says_what_to_do(tmp_path: Path, given: Any, hint: str) -> None:
    found = one(tmp_path, MILK, GYM, given)
    assert not found.valid
    assert re.search(hint, " ".join(found.errors))


def test_a_repeating_task_ends_with_the_year_unless_said_otherwise(tmp_path: Path) -> None:
    made = one(tmp_path, GYM).after
    assert made
    assert (made.scheduled_for, made.recurrence.until) == ("2026-11-23", "2026-12-31")
    later = one(tmp_path, {**GYM, "date": "2028-01-03"}).after
    assert later
    assert later.recurrence.until == "2028-12-31"


def test_another_rule_keeps_the_day_until_which_a_task_repeats(tmp_path: Path) -> None:
    changed = one(tmp_path, {**GYM, "until": "2031-01-01"}, {"id": 1, "recurrence": "daily"}).after
    assert changed
    assert (changed.recurrence.type, changed.recurrence.until) == ("daily", "2031-01-01")


def test_switching_recurrence_off_forgets_its_completed_occurrences(tmp_path: Path) -> None:
    done = {"op": "complete_occurrence", "id": 1, "date": "2026-11-23"}
    off = one(tmp_path, GYM, done, {"id": 1, "recurrence": "none"})
    assert off.before
    assert off.before.completed_occurrences == ("2026-11-23",)
    assert off.after
    assert off.after.completed_occurrences == ()


def test_an_occurrence_can_be_opened_again(tmp_path: Path) -> None:
    done = {"op": "complete_occurrence", "id": 1, "date": "2026-11-23"}
    again = one(tmp_path, GYM, done, {"op": "reopen", "id": 1}).after
    assert again
    assert again.completed_occurrences == ()


@pytest.mark.promise("TASK-4")
def test_a_dry_run_counts_and_warns_above_the_limits_and_changes_nothing(tmp_path: Path) -> None:
    with task_list(tmp_path) as tasks:
        tasks.apply(MANY)
        before = tasks.as_bytes()
        report = tasks.dry_run([{"op": "bulk_delete", "where": {"text": "chore"}}])
        assert (report.results[0].count, len(report.results[0].ids)) == (60, 10)
        assert report.summary.deleted == 60
        assert report.warnings == ("This deletes 60 tasks.",)
        changed = tasks.dry_run([{"op": "bulk_update", "where": {"text": "chore"}, "priority": "low"}])
        assert changed.warnings == ("This changes 60 tasks.",)
        few = [{"op": "delete", "id": number} for number in range(1, 21)]
        assert tasks.dry_run(few).warnings == ()
        assert tasks.as_bytes() == before
        applied = tasks.apply([{"op": "bulk_delete", "where": {"text": "chore"}}])
        assert len(applied.report.results[0].ids) == 60


def test_a_later_operation_sees_what_an_earlier_one_did(tmp_path: Path) -> None:
    with task_list(tmp_path) as tasks:
        report = tasks.apply([MILK, {"op": "complete", "id": 1}, {"op": "complete", "id": 1}]).report
        assert [each.valid for each in report.results] == [True, True, False]
        assert tasks.all()[0].completed
