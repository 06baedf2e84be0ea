"""`handrail tasks`: the list as a person keeps it in the shell."""

import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from handrail.config.places import find_places, workspace_folder
from tests.interfaces.cli.program import run, terminal
from tests.tasks.lists import task_list

ZONE = "Pacific/Kiritimati"  # 14 hours ahead: often another day than UTC


def tasks(folder: Path, *arguments: str, status: int = 0) -> str:
    done = run("tasks", *arguments, cwd=folder, TZ=ZONE)
    assert done.returncode == status, done.stderr
    return done.stdout if status in (0, 1) else done.stderr


def day(days: int) -> str:
    return (datetime.now(ZoneInfo(ZONE)).date() + timedelta(days=days)).isoformat()


@pytest.mark.promise("TASK-8")
def test_a_list_is_kept_from_the_first_task_to_the_last_undo(tmp_path: Path) -> None:
    assert "No tasks. Add one" in tasks(tmp_path)
    assert tasks(tmp_path, "add", "Buy", "milk") == "Added 1 Buy milk\n"
    tasks(tmp_path, "add", "Call Zoë", "--on", "tomorrow", "--at", "7pm", "--priority", "high")
    tasks(tmp_path, "add", "Pay rent", "--on", "yesterday")
    shown = tasks(tmp_path)
    assert shown.startswith("Overdue  1\n")
    assert re.search(r"2 ○ Call Zoë +tomorrow 19:00  high priority", shown)
    assert tasks(tmp_path, "edit", "zoe", "--on", "2099-12-01").startswith(
        "Changed 2 Call Zoë, Tue 1 Dec 2099"
    )
    assert tasks(tmp_path, "done", "1") == "Done: 1 Buy milk\n"
    assert "milk" not in tasks(tmp_path)
    assert "✓ Buy milk" in tasks(tmp_path, "list", "--all")
    assert "tasks undo" in tasks(tmp_path, "delete", "2-3")
    assert "Nothing to do; 1 task done" in tasks(tmp_path)
    assert "Back: 3 Pay rent" in tasks(tmp_path, "undo")
    assert "As before: 1 Buy milk" in tasks(tmp_path, "undo")
    rows = [json.loads(text) for text in tasks(tmp_path, "list", "--json").splitlines()]
    assert {row["title"]: row["group"] for row in rows} == {
        "Pay rent": "overdue",
        "Call Zoë": "later",
        "Buy milk": "no date",
    }
    assert rows[0]["scheduled_for"] == day(-1)


@pytest.mark.promise("TASK-8")
def test_a_repeating_task_is_done_day_by_day_and_the_week_shows_it(tmp_path: Path) -> None:
    assert "from today 09:30, daily until" in tasks(
        tmp_path, "add", "Stand-up", "--every", "day", "--at", "9:30"
    )
    assert tasks(tmp_path, "done", "stand") == "Done: 1 Stand-up, today\n"
    assert f"already completed for {day(0)}" in tasks(tmp_path, "done", "1", "--on", "today", status=2)
    rows = [json.loads(text) for text in tasks(tmp_path, "week", "--json").splitlines()]
    assert len(rows) == 7
    today = next(row for row in rows if row["day"] == day(0))
    assert [each["done"] for each in today["tasks"]] == [True]
    assert "Open again: 1 Stand-up" in tasks(tmp_path, "done", "1", "--not")
    assert "  1 ○ Stand-up  09:30  ↻ daily" in tasks(tmp_path, "week")
    tasks(tmp_path, "edit", "1", "--every", "none")
    assert json.loads(tasks(tmp_path, "show", "1", "--json"))["recurrence"]["type"] == "none"


@pytest.mark.promise("TASK-8")
def test_a_day_has_what_occurs_on_it(tmp_path: Path) -> None:
    tasks(tmp_path, "add", "Stretch", "--every", "day", "--on", "2031-03-03", "--until", "2031-04-01")
    tasks(tmp_path, "add", "Meeting", "--on", "2031-03-10", "--at", "10")
    tasks(tmp_path, "done", "1", "--on", "2031-03-09")
    shown = tasks(tmp_path, "list", "--on", "2031-03-10")
    assert shown == "Mon 10 Mar 2031\n  2 ○ Meeting  10:00\n  1 ○ Stretch  ↻ daily\n"
    (day,) = map(json.loads, tasks(tmp_path, "list", "--on", "2031-03-09", "--all", "--json").splitlines())
    assert (day["day"], [each["done"] for each in day["tasks"]]) == ("2031-03-09", [True])
    assert tasks(tmp_path, "list", "--on", "2031-03-09") == "Sun 9 Mar 2031\n"


def test_a_wrong_request_changes_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    tasks(tmp_path, "add", "Milk")
    tasks(tmp_path, "add", "Milkshake")
    assert "Several tasks have 'mil'" in tasks(tmp_path, "done", "mil", status=2)
    assert "'someday' is not a date: write it as" in tasks(tmp_path, "edit", "1", "--on", "someday", status=2)
    assert "There is no task '9'" in tasks(tmp_path, "done", "1", "9", status=2)
    assert "is not a recurrence" in tasks(tmp_path, "add", "x", "--every", "eon", status=2)
    assert "such as --on fri" in tasks(tmp_path, "edit", "1", status=2)
    for given in ("²-³", "1²", "9" * 5_000, "7-99999999999"):  # as digits and as ranges they are no number
        assert "There is no task" in tasks(tmp_path, "delete", given, status=2)
    for far in ("9999-12-31", "0001-01-01"):
        assert "is not a date: write it as" in tasks(tmp_path, "week", far, status=2)
    assert len(tasks(tmp_path, "list", "--json").splitlines()) == 2
    assert tasks(tmp_path, "add", "half \udcff a character") == "Added 3 half ? a character\n"
    tasks(tmp_path, "done", "milk")
    assert "○ Milk\n" not in tasks(tmp_path)


@pytest.mark.promise("TASK-2")
def test_a_time_zone_that_does_not_exist_is_said_and_what_to_do(tmp_path: Path) -> None:
    tasks(tmp_path, "add", "Milk")
    assert run("config", "set", "tasks.time_zone", "Mars/Olympus", cwd=tmp_path).returncode == 0
    assert "There is no time zone 'Mars/Olympus'. Set another one:" in tasks(tmp_path, status=2)
    assert run("config", "set", "tasks.time_zone", "Europe/Berlin", cwd=tmp_path).returncode == 0
    assert "Milk" in tasks(tmp_path)


@pytest.mark.promise("TASK-8")
def test_many_are_deleted_only_after_a_second_word(tmp_path: Path) -> None:
    with task_list(workspace_folder(find_places(os.environ), tmp_path)) as kept:
        kept.apply([{"title": f"Chore {number}"} for number in range(21)])
    assert "This deletes 21 tasks. Nobody can be asked" in tasks(tmp_path, "delete", "1-21", status=3)
    with terminal("tasks", "delete", "1-21", cwd=tmp_path) as talk:
        talk.expect("This deletes 21 tasks. Are you sure?")
        talk.type("y\r")
        assert talk.end() == 0
    assert "No tasks" in tasks(tmp_path)
    assert "and 11 tasks more" in tasks(tmp_path, "undo")


@pytest.mark.promise("TASK-9")
def test_a_task_becomes_an_intent_or_an_item_of_a_checklist(tmp_path: Path) -> None:
    tasks(tmp_path, "add", "Totals are right", "--notes", "pytest tests/test_cart.py passes")
    tasks(tmp_path, "promote", "1", "--checklist", "CHECKLIST.md")
    assert (
        (tmp_path / "CHECKLIST.md")
        .read_text()
        .endswith("- [ ] Totals are right\n  pytest tests/test_cart.py passes\n")
    )
    assert "already has" in tasks(tmp_path, "promote", "1", "--checklist", "CHECKLIST.md", status=2)
    assert "Say what it becomes" in tasks(tmp_path, "promote", "1", status=2)
    assert run("intents", "init", cwd=tmp_path).returncode == 0
    tasks(tmp_path, "promote", "1", "--intent", "INT-1", "--scope", "src/**")
    shown = json.loads(run("intents", "show", "INT-1", "--json", cwd=tmp_path).stdout)
    assert (shown["name"], shown["owned_scope"]) == ("Totals are right", ["src/**"])
    assert shown["acceptance_criteria"] == ["pytest tests/test_cart.py passes"]
