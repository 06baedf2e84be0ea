"""Which tasks a message is about, by its words: days, priority, state. English only."""

import re
from datetime import date

from handrail.protocol.values import TaskFilter
from handrail.tasks.dates import WEEKDAYS, read_date, week_of
from handrail.tasks.normalise import Clock
from handrail.tasks.recurrence import ONE_DAY

DAYS = "|".join(f"{name[:3]}(?:{name[3:]})?s?" for name in WEEKDAYS)
SPAN = re.compile(
    rf"\b(?:(overdue|late)|(this|next|last)\s(week|month)|((?:next\s)?(?:{DAYS}|weekend)|today|tonight"
    r"|tomorrow|yesterday|\d{4}-\d{2}-\d{2}))\b"
)
SENTENCE = re.compile(r"(?:(?!\band\sthen\b|,\s*then\b)[^.!?;\n])+[?]*")
POLITE = re.compile(r"(?:please\s)?(?:can|could|would|will)\b")
QUESTION = re.compile(
    r"^(?:and\s|so\s|ok(?:ay)?,?\s|hi,?\s|hey,?\s)?(?:what|which|when|where|who|why|how|is|are|was|were|do|does|did"
    r"|have|has|am|any|show|list|see|tell|give|find|count|summari[sz]e)\b"
)
PRIORITY = re.compile(r"\b(high|low|medium)[\s-]priority\b|\b(urgent|important)\b")
CHANGE = re.compile(
    r"\b(?:remind|add|create|delete|remove|drop|mark|move|reschedule|schedule|postpone|snooze|push|complete|finish|rename"
    r"|set|clear|cancel|put|make|change|tick)\b"
)
"""Verbs of requests, also inside a polite question."""


def asks_only(message: str) -> bool:
    """Whether every sentence only asks, or wants to see something, and none names a change."""
    found = [part for each in SENTENCE.findall(message.lower()) if (part := each.strip(" ,"))]
    return bool(found) and all(_asks(part) and not CHANGE.search(part) for part in found)


def _asks(sentence: str) -> bool:
    return bool(QUESTION.match(sentence)) or (sentence.endswith("?") and not POLITE.match(sentence))


def asks_for_undo(message: str) -> bool:
    """Whether the message wants the last change of the list undone."""
    return bool(re.match(r"\s*(?:please\s+)?(?:undo\b|revert\s+(?:the\s+last|that)\b)", message.lower()))


def asks_something(message: str) -> bool:
    """Whether a part of the message asks; the rest can want a change."""
    return "?" in message or bool(QUESTION.match(message.strip().lower()))


def read_scope(message: str, clock: Clock) -> TaskFilter | None:
    """The filter that the words of a question give; None where they name no day, priority or state.

    A request for a change often names the day that a task moves to, so its words are not a filter.
    """
    return read_filter(message, clock) if asks_only(message) else None


def read_filter(words: str, clock: Clock) -> TaskFilter | None:
    """The tasks of a day, a priority or a state; None where the words name none."""
    text = words.lower()
    span = SPAN.search(text)
    priority = PRIORITY.search(text)
    done = True if re.search(r"\b(?:done|completed|finished)\b", text) else None
    repeating = True if re.search(r"\b(?:repeating|recurring|habits?)\b", text) else None
    found = TaskFilter(
        scheduled_range=_range(span, clock) if span else None,
        priority=(priority[1] or "high") if priority else "",
        completed=False if span and span[1] else done,
        repeating=repeating,
    )
    return found if found != TaskFilter() else None


def _range(span: "re.Match[str]", clock: Clock) -> tuple[str, str] | None:
    today = clock.today
    if span[1]:
        return "", (today - ONE_DAY).isoformat()
    if span[3] == "week":
        first, last = week_of(today + {"this": 0, "next": 7, "last": -7}[span[2]] * ONE_DAY)
        return first.isoformat(), last.isoformat()
    if span[3] == "month":
        index = today.year * 12 + today.month - 1 + {"this": 0, "next": 1, "last": -1}[span[2]]
        first = date(index // 12, index % 12 + 1, 1)
        following = date((index + 1) // 12, (index + 1) % 12 + 1, 1)
        return first.isoformat(), (following - ONE_DAY).isoformat()
    name = span[4]
    day = read_date(name.removesuffix("s") if name not in ("tues", "thurs") else name[:3], *clock)
    if day is None:
        return None
    last = day + ONE_DAY if name.endswith("weekend") else day
    return day.isoformat(), last.isoformat()
