from datetime import date
from zoneinfo import ZoneInfo

import pytest

from handrail.protocol.values import TaskFilter
from handrail.tasks.normalise import Clock
from handrail.tasks.scope import asks_only, read_scope

CLOCK = Clock(date(2026, 11, 18), ZoneInfo("UTC"))  # a Wednesday


@pytest.mark.promise("TASK-10")
@pytest.mark.parametrize(
    ("message", "only"),
    [
        ("What is due this week?", True),
        ("show me my tasks. which are done?", True),
        ("Do I have anything tomorrow", True),
        ("When do I call Zoë? And add a task for the rent.", False),
        ("when I get home, remind me to call Bob", False),
        ("can you move milk to friday?", False),
        ("buy milk", False),
        ("Anything left for today? And for tomorrow?", True),
        ("the dentist is when?", True),
        ("could you note the dentist for friday?", False),
        ("what is on friday? move it to monday", False),
        ("", False),
    ],
)
def test_only_a_message_that_names_no_change_only_asks(message: str, only: bool) -> None:
    assert asks_only(message) == only


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ("what is due this week?", TaskFilter(scheduled_range=("2026-11-16", "2026-11-22"))),
        ("what comes next month?", TaskFilter(scheduled_range=("2026-12-01", "2026-12-31"))),
        ("what do I have on fridays?", TaskFilter(scheduled_range=("2026-11-20", "2026-11-20"))),
        ("which tasks are there this weekend?", TaskFilter(scheduled_range=("2026-11-21", "2026-11-22"))),
        ("what is overdue?", TaskFilter(scheduled_range=("", "2026-11-17"), completed=False)),
        ("which urgent tasks are there?", TaskFilter(priority="high")),
        ("what have I completed?", TaskFilter(completed=True)),
        ("list my habits", TaskFilter(repeating=True)),
        ("what is on my list?", None),
        ("move everything of today to friday", None),
    ],
)
def test_a_question_is_about_the_tasks_that_its_words_name(message: str, where: TaskFilter | None) -> None:
    assert read_scope(message, CLOCK) == where
