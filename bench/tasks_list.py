"""`python -m bench.tasks_list`: search, snapshot and start of a task list of 10,000 tasks."""

import tempfile
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from bench.timing import median_ms
from handrail.protocol.values import TaskFilter
from handrail.storage.event_log import Log
from handrail.tasks.task_list import TaskList

TASKS, RUNS = 10_000, 21
WANTED_SEARCH, WANTED_FOCUS = 20, 50
WORDS = ("call", "pay", "write", "book", "clean", "café", "report", "garden", "invoice", "dentist")


class Figures(NamedTuple):
    """Milliseconds, each the median."""

    search: float
    focus: float
    filtered: float
    start: float
    """To open the log and read the list in a new process's place."""
    apply: float


def measure() -> Figures:
    zone = ZoneInfo("Europe/Berlin")
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder))
        tasks = TaskList(log, zone)
        for start in range(0, TASKS, 50):
            tasks.apply([_task(number) for number in range(start, start + 50)])
        tasks.search("warm")
        found = Figures(
            search=median_ms(lambda: tasks.search("pay inv"), RUNS),
            focus=median_ms(lambda: tasks.focused(message="move the dentist to friday"), RUNS),
            filtered=median_ms(lambda: tasks.focused(TaskFilter(text="café", completed=False)), RUNS),
            start=median_ms(lambda: _opened(Path(folder), zone), RUNS),
            apply=median_ms(lambda: tasks.apply([{"title": "One more"}]), RUNS),
        )
        log.close()
        return found


def _task(number: int) -> dict[str, object]:
    words = [WORDS[number * step % len(WORDS)] for step in (1, 3, 7)]
    repeats = "weekly" if number % 10 == 0 else "none"
    return {
        "title": f"{' '.join(words)} {number}",
        "notes": f"about {words[0]}, as said in letter {number}. " * 3,
        "scheduled_for": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}",
        "recurrence": {"type": repeats, "until": "2027-12-31"},
        "priority": ("low", "medium", "high")[number % 3],
    }


def _opened(folder: Path, zone: ZoneInfo) -> None:
    log = Log(folder)
    TaskList(log, zone).load()
    log.close()


def report(found: Figures) -> list[str]:
    return [
        f"A list of {TASKS:,} tasks: search {found.search:.1f} ms, wanted are {WANTED_SEARCH}; "
        f"snapshot for a model {found.focus:.1f}, with a filter {found.filtered:.1f}, "
        f"wanted are {WANTED_FOCUS}; to open and read it {found.start:.0f}, to add a task {found.apply:.1f}."
    ]


if __name__ == "__main__":
    print("\n".join(report(measure())))
