"""Finding tasks: by a filter, by words, and the few that a model is shown."""

import unicodedata
from collections.abc import Iterable, Mapping, Set
from datetime import date
from functools import lru_cache
from heapq import nsmallest
from typing import NamedTuple

from handrail.protocol.task import Task
from handrail.protocol.values import TaskFilter
from handrail.tasks.dates import week_of
from handrail.tasks.recurrence import next_occurrence, next_open_occurrence, open_occurrence

MAX_FOCUSED, MIN_WORD = 50, 3
CACHED_TEXTS = 50_000
FAR = "9999-12-31"
COMMON_WORDS = {
    *("the", "and", "for", "with", "from", "that", "this", "these", "those", "all", "task", "tasks", "list"),
    *("reminder", "remind", "add", "move", "mark", "done", "delete", "remove", "complete", "completed"),
    *("finished", "schedule", "reschedule", "postpone", "next", "week", "month", "day", "today", "tomorrow"),
    *(
        "what",
        "which",
        "when",
        "where",
        "who",
        "why",
        "how",
        "many",
        "much",
        "have",
        "has",
        "are",
        "was",
        "did",
    ),
    *("does", "any", "due", "left", "show", "give", "tell", "there", "about", "should", "anything", "every"),
    *("everything", "overdue", "still", "open"),
}


class SearchText(NamedTuple):
    """What a search looks at: without case and accents, each word after a space."""

    title: str
    notes: str
    words: frozenset[str]
    """Of the title."""


@lru_cache(CACHED_TEXTS)
def _search_text(title: str, notes: str) -> SearchText:
    folded = fold(title)
    return SearchText(f" {folded}", f" {fold(notes)}", frozenset(folded.split()))


def fold(text: str) -> str:
    """The words of a text without case, accents and punctuation, with one space between them."""
    if not text.isascii():
        text = "".join(
            each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each)
        )
    return " ".join("".join(each if each.isalnum() else " " for each in text.casefold()).split())


@lru_cache(64)
def _words(text: str) -> tuple[str, ...]:
    return tuple(fold(text).split())


def folded_title(task: Task) -> str:
    return _search_text(task.title, task.notes).title[1:]


def search(tasks: Iterable[Task], text: str) -> list[Task]:
    """Tasks that have every word of the text, the best first: open, in the title, as a word, as its start."""
    words = _words(text)
    if not words:
        return []
    found = []
    for task in tasks:
        shown = _search_text(task.title, task.notes)
        if all(word in shown.title or word in shown.notes for word in words):
            in_title = sum(f" {word}" in shown.title for word in words) * 2
            in_title += sum((word in shown.title) + (word in shown.words) for word in words)
            found.append((task.completed, -in_title, -task.number, task))
    return [each[-1] for each in sorted(found, key=lambda each: each[:-1])]


def matches(task: Task, where: TaskFilter, today: date) -> bool:
    """Whether a filter lets the task through: its text names starts of words of the task.

    A repeating task is in a range with an open occurrence in it; in one without a first day, which means what
    is overdue, with the occurrence that is to be done next.
    """
    if where.ids and task.id not in where.ids:
        return False
    if where.priority and task.priority != where.priority:
        return False
    if where.completed is not None and task.completed != where.completed:
        return False
    if where.repeating is not None and task.repeats != where.repeating:
        return False
    if where.scheduled_range and not _within(task, *where.scheduled_range, today):
        return False
    if where.text:
        shown = _search_text(task.title, task.notes)
        return all(f" {word}" in shown.title or f" {word}" in shown.notes for word in _words(where.text))
    return True


def _within(task: Task, first: str, last: str, today: date) -> bool:
    if not task.scheduled_for or (last and task.scheduled_for > last):
        return False
    if not task.repeats:
        return task.scheduled_for >= first
    found = next_open_occurrence(task, date.fromisoformat(first)) if first else open_occurrence(task, today)
    return found is not None and found.isoformat() <= (last or FAR)


def selected(tasks: Mapping[str, Task], where: TaskFilter, today: date) -> list[Task]:
    """The tasks that a filter lets through, oldest first."""
    if where.ids:
        named = (tasks[each] for each in dict.fromkeys(where.ids) if each in tasks)
        return [task for task in named if matches(task, where, today)]
    return [task for task in tasks.values() if matches(task, where, today)]


class Focus(NamedTuple):
    """The tasks that a model is shown, and how many there are in all."""

    tasks: tuple[Task, ...]
    total: int


def focused(
    tasks: Mapping[str, Task],
    today: date,
    where: TaskFilter | None = None,
    *,
    message: str = "",
    most: int = MAX_FOCUSED,
) -> Focus:
    """The tasks of a filter; else those that the message names, this week's, and others, nearest first."""
    if where is not None and where != TaskFilter():
        found = selected(tasks, where, today)
        found.sort(key=lambda task: (task.completed, _nearness(task, today), task.number))
        return Focus(tuple(found[:most]), len(found))
    monday, sunday = (day.isoformat() for day in week_of(today))
    words = telling_words(message)

    def rank(task: Task) -> tuple[int, bool, int, int]:
        shared = _shared(words, task) if words else 0
        later = task.completed or not _within(task, monday, sunday, today)
        return -shared, later, _nearness(task, today), -task.number

    wanted = [task for task in tasks.values() if not task.completed or words]
    ranked = nsmallest(most, ((rank(task), task.id) for task in wanted))
    found = [tasks[each] for key, each in ranked if key[0] or not tasks[each].completed]
    return Focus(tuple(found), len(tasks))


def names(message: str, task: Task) -> bool:
    """Whether the message has a word of the task's title, or its number."""
    return _shared(telling_words(message), task) > 0


def telling_words(message: str) -> set[str]:
    """The words of a message that can name a task: its numbers, and words that not every message has."""
    words = set(fold(message).split())
    return {word for word in words if word.isdigit() or len(word) >= MIN_WORD} - COMMON_WORDS


def _shared(words: Set[str], task: Task) -> int:
    return len(words & _search_text(task.title, task.notes).words) + 2 * (task.id in words)


def _nearness(task: Task, today: date) -> int:
    """Days between today and the task's date, or its next one; a task without a date comes last."""
    if not task.scheduled_for:
        return 1_000_000
    day = (next_occurrence(task, today) if task.repeats else None) or date.fromisoformat(task.scheduled_for)
    return abs((day - today).days)
