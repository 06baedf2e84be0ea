"""Requests that are read without a model."""

from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from handrail.protocol.task import Recurrence, Task
from handrail.tasks.normalise import Clock
from handrail.tasks.wording import TO_WHEN, proposal, read_wording, understood

CLOCK = Clock(date(2026, 11, 18), ZoneInfo("UTC"))  # a Wednesday
DAILY = Recurrence("daily", until="2026-12-31")
TITLES = (
    "Order the cake",
    "Oil change",
    "Old newspapers",
    "Budget review",
    "Chapter 1",
    "Chapter 10",
    "Call Zoë",
)
TASKS = {str(number): Task(str(number), title) for number, title in enumerate(TITLES, 1)}
TASKS["8"] = Task("8", "Water the plants", scheduled_for="2026-11-01", recurrence=DAILY)
OPEN: dict[str, Any] = {"completed": False, "repeating": False}


@pytest.mark.promise("TASK-21")
@pytest.mark.parametrize(
    ("message", "meant"),
    [
        ("add buy stamps to my list", {"op": "create", "title": "Buy stamps"}),
        (
            "Remind me on friday at 10 to call the dentist.",
            {"op": "create", "title": "Call the dentist", "scheduled_for": "friday", "time": "10"},
        ),
        (
            "remind me to pay the rent on the 1st of every month",
            {
                "op": "create",
                "title": "Pay the rent",
                "scheduled_for": "the 1st",
                "recurrence": "every month",
            },
        ),
        (
            "every weekday at 8:15 remind me to stretch",
            {
                "op": "create",
                "title": "Stretch",
                "scheduled_for": "today",
                "time": "8:15",
                "recurrence": "every weekday",
            },
        ),
        (
            "remind me every monday to send the report",
            {"op": "create", "title": "Send the report", "recurrence": "every monday"},
        ),
        (
            "could you add a high priority task to file the taxes by the end of the month?",
            {
                "op": "create",
                "title": "File the taxes",
                "scheduled_for": "end of the month",
                "priority": "high",
            },
        ),
        ("remind me to delete old mails", {"op": "create", "title": "Delete old mails"}),
        ("push the cake to 3 january", {"op": "update", "id": "1", "scheduled_for": "3 january"}),
        (
            "move the oil change from monday to friday at 15:00",
            {"op": "update", "id": "2", "scheduled_for": "friday", "time": "15:00"},
        ),
        ("give the cake low priority", {"op": "update", "id": "1", "priority": "low"}),
        ("move task 3 to tomorrow", {"op": "update", "id": "3", "scheduled_for": "tomorrow"}),
        ("tick off chapter 1", {"op": "complete", "id": "5"}),
        ("please mark the budget review as done", {"op": "complete", "id": "4"}),
        ("call zoe is done, mark it as done", {"op": "complete", "id": "7"}),
        ("mark the plants as done", {"op": "complete_occurrence", "id": "8"}),
        (
            "mark the plants of yesterday as done",
            {"op": "complete_occurrence", "id": "8", "date": "yesterday"},
        ),
        ("delete all chapters from my list", {"op": "bulk_delete", "where": {"text": "chapter"}}),
        ("delete all done tasks", {"op": "bulk_delete", "where": {"completed": True}}),
        ("delete everything", {"op": "bulk_delete", "where": {"completed": False}}),
        ("mark all chapters as done", {"op": "bulk_complete", "where": {"text": "chapter", **OPEN}}),
        (
            "Move everything that is overdue to tomorrow",
            {
                "op": "bulk_update",
                "where": {"scheduled_range": ["", "2026-11-17"], **OPEN},
                "scheduled_for": "tomorrow",
            },
        ),
        (
            "move all high priority tasks of today to friday",
            {
                "op": "bulk_update",
                "where": {"scheduled_range": ["2026-11-18", "2026-11-18"], "priority": "high", **OPEN},
                "scheduled_for": "friday",
            },
        ),
        ("remove the yacht", {"op": "delete", "id": "yacht"}),
        ("delete the chapter", None),  # there are two
        ("finish the report by friday", None),  # a new task, or one that is done
        ("make dinner at 7", None),
        ("add milk and delete the cake", None),
        ("remind me on monday to book a table for friday", None),
        ("remind me tomorrow evening to call", None),
        ('add "Dinner at 7"', None),
        ("what is due today?", None),
        ("", None),
    ],
)
def test_a_request_is_understood_by_its_words_or_left_to_the_model(message: str, meant: Any) -> None:
    read = read_wording(message, CLOCK)
    assert (read and understood(read, TASKS, CLOCK)) == meant


@pytest.mark.promise("TASK-21")
def test_a_move_without_a_day_is_asked_about() -> None:
    read = read_wording("postpone the cake", CLOCK)
    assert read
    assert proposal(read, TASKS, CLOCK) == {"operations": [], "question": TO_WHEN}


def test_words_without_a_name_mean_the_tasks_that_were_picked() -> None:
    read = read_wording("move them to friday", CLOCK)
    assert read
    both = {"op": "bulk_update", "where": {"ids": ["1", "2"]}, "scheduled_for": "friday"}
    assert understood(read, TASKS, CLOCK, ["1", "2"]) == both
    one = {"op": "update", "id": "3", "scheduled_for": "friday"}
    assert understood(read, TASKS, CLOCK, ["3"]) == one
    assert understood(read, TASKS, CLOCK) is None
