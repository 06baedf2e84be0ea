"""A task list for tests: in a real log, with a clock that stands still."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from handrail.storage.event_log import Log
from handrail.tasks.task_list import TaskList

WEDNESDAY = datetime(2026, 11, 18, 12, 0, tzinfo=UTC).timestamp()
"""2026-11-18, noon: a Wednesday."""


@contextmanager
def task_list(folder: Path, zone: str = "UTC", now: float = WEDNESDAY) -> Iterator[TaskList]:
    log = Log(folder)
    try:
        yield TaskList(log, ZoneInfo(zone), lambda: now)
    finally:
        log.close()


DATES = st.sampled_from(
    ["today", "tomorrow", "fri", "2026-11-18", "2026-12-31", "2027-02-28", "nonsense", "", None, "in 3 days"]
)
REPEATS = st.sampled_from(
    ["none", "daily", "weekdays", "weekly", "monthly", "every 3 days", "every monday", "hourly", None]
)
IDS = st.one_of(st.integers(1, 6), st.sampled_from(["1", "#2", "99", "", "task 3", "Buy milk"]))
FIELDS = {
    "title": st.sampled_from(["Buy milk", "Call Zoë", "", "  Pay   rent "]),
    "notes": st.text(max_size=5),
    "scheduled_for": DATES,
    "time": st.sampled_from(["9:30", "7 pm", "noon", "25:00", ""]),
    "priority": st.sampled_from(["high", "p2", "none", 3, "huge"]),
    "completed": st.sampled_from([True, False, "yes", "maybe"]),
    "recurrence": REPEATS,
    "until": DATES,
}
WHERE: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "ids": st.lists(IDS, max_size=3),
        "text": st.sampled_from(["milk", "zoe", "x"]),
        "scheduled_range": st.sampled_from([["2026-11-01", "2026-12-31"], ["today", "fri"], "tomorrow", []]),
        "priority": st.sampled_from(["high", "low"]),
        "completed": st.booleans(),
        "repeating": st.booleans(),
    },
)
OTHER_FIELDS = {name: each for name, each in FIELDS.items() if name != "title"}
OPERATION: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries({"op": st.just("create"), "title": FIELDS["title"]}, optional=OTHER_FIELDS),
    st.fixed_dictionaries(
        {"op": st.sampled_from(["update", "delete", "complete", "reopen"]), "id": IDS}, optional=FIELDS
    ),
    st.fixed_dictionaries({"op": st.just("complete_occurrence"), "id": IDS}, optional={"date": DATES}),
    st.fixed_dictionaries(
        {"op": st.sampled_from(["bulk_update", "bulk_complete", "bulk_delete"]), "where": WHERE},
        optional=FIELDS,
    ),
    st.fixed_dictionaries({}, optional={**FIELDS, "id": IDS, "where": WHERE}),
    st.sampled_from([None, "delete everything", [], {"op": "explode"}]),
)
OPERATIONS = st.lists(OPERATION, max_size=8)
