"""Dates and times as people and models write them, in the user's time zone."""

import os
import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from handrail.protocol.errors import UsageProblem
from handrail.tasks.recurrence import ONE_DAY, SATURDAY, WEEK

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
DATE_HINT = "write it as 2026-12-01, or as today, tomorrow, fri, next week, in 3 days, 1 dec"
TIME_HINT = "write it as 09:30 or 9:30 pm"
MIN_NAME = 3
ZONE_FOLDER = "zoneinfo/"
LOCAL_TIME = Path("/etc/localtime")


def user_zone(setting: str, environ: Mapping[str, str] = os.environ) -> ZoneInfo:
    """The time zone of the user: the setting, else TZ, else the system's, else UTC.

    Raises UsageProblem for a setting that names none.
    """
    if setting:
        try:
            return ZoneInfo(setting)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UsageProblem(
                f"There is no time zone {setting!r}. "
                "Set another one: `handrail config set tasks.time_zone Europe/Berlin`."
            ) from error
    link = os.path.realpath(LOCAL_TIME)
    for name in (environ.get("TZ", "").lstrip(":"), link.rpartition(ZONE_FOLDER)[2], "UTC"):
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    raise UsageProblem("The time zone database is missing. Install it (Debian, Ubuntu: tzdata).")


def read_date(text: str, today: date, zone: ZoneInfo) -> date | None:
    """The date that the words mean; None where they mean none.

    A weekday is the next one after today; a day without a year is the next one, today included. Where a
    weekday and a day are both named, they have to agree.
    """
    words = " ".join(text.strip().lower().rstrip(".").split())
    if both := re.match(r"([a-z]{3,})[,.]?\s(?=\d)(.+)", words):
        day = next((n for n, name in enumerate(WEEKDAYS) if name.startswith(both[1])), None)
        if day is not None:
            found = read_date(both[2], today, zone)
            return found if found and found.weekday() == day else None
    words = re.sub(r"^(?:on|by|until|due|this)\s+(?=\w)", "", words)
    if moment := _read_moment(text.strip(), zone):
        return moment
    named = {
        "today": today,
        "tonight": today,
        "now": today,
        "tomorrow": today + ONE_DAY,
        "tmr": today + ONE_DAY,
        "yesterday": today - ONE_DAY,
        "day after tomorrow": today + 2 * ONE_DAY,
        "the day after tomorrow": today + 2 * ONE_DAY,
        "next week": today + (WEEK - today.weekday()) * ONE_DAY,
        "week": week_of(today)[1],
        "end of week": week_of(today)[1],
        "end of the week": week_of(today)[1],
        "weekend": today + max(0, SATURDAY - today.weekday()) * ONE_DAY,
        "next month": _add_months(today.replace(day=1), 1),
        "end of month": _month_end(today),
        "end of the month": _month_end(today),
        "end of year": date(today.year, 12, 31),
        "end of the year": date(today.year, 12, 31),
    }
    if words in named:
        return named[words]
    readers = (_read_distance, _read_weekday, _read_day_of_month, _read_day_and_month)
    return next((found for reader in readers if (found := reader(words, today))), None)


def _read_moment(text: str, zone: ZoneInfo) -> date | None:
    """An ISO date, or the date in the user's zone of an ISO date and time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    try:
        return (moment.astimezone(zone) if moment.tzinfo else moment).date()
    except OverflowError:  # in the first or the last year that there is
        return None


def _read_distance(words: str, today: date) -> date | None:
    found = re.fullmatch(r"(?:in\s|\+)\s?(\d{1,4}|an?)\s?(d|w|m|y|days?|weeks?|months?|years?)?", words)
    if not found:
        return None
    number = 1 if found[1] in ("a", "an") else int(found[1])
    try:
        match (found[2] or "d")[0]:
            case "d":
                return today + number * ONE_DAY
            case "w":
                return today + timedelta(weeks=number)
            case "m":
                return _add_months(today, number)
            case _:
                return _add_months(today, 12 * number)
    except (OverflowError, ValueError):
        return None


def _read_weekday(words: str, today: date) -> date | None:
    following = words.startswith("next ")
    name = words.removeprefix("next ")
    index = _index_of(name, WEEKDAYS)
    if index is None:
        return None
    if following:  # the one of the week after this one
        return today + (WEEK - today.weekday() + index) * ONE_DAY
    return today + ((index - today.weekday() - 1) % WEEK + 1) * ONE_DAY


def _read_day_of_month(words: str, today: date) -> date | None:
    """The next `1st`, today included."""
    found = re.fullmatch(r"(?:the )?(\d{1,2})(?:st|nd|rd|th)", words)
    if not found:
        return None
    for months in range(3):
        first = _add_months(today.replace(day=1), months)
        if 1 <= int(found[1]) <= monthrange(first.year, first.month)[1]:
            day = first.replace(day=int(found[1]))
            if day >= today:
                return day
    return None


def _read_day_and_month(words: str, today: date) -> date | None:
    words = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|,|\bthe\s|\bof\s", "", words)
    for pattern, day_at, month_at in (
        (r"(\d{1,2})\.? ([a-z]{3,9})(?: (\d{4}))?", 1, 2),
        (r"([a-z]{3,9}) (\d{1,2})(?: (\d{4}))?", 2, 1),
    ):
        found = re.fullmatch(pattern, words)
        month = _index_of(found[month_at], MONTHS) if found else None
        if found is None or month is None:
            continue
        for year in [int(found[3])] if found[3] else range(today.year, today.year + 5):
            try:
                day = date(year, month + 1, int(found[day_at]))
            except ValueError:
                continue
            if found[3] or day >= today:
                return day
    return None


def _index_of(name: str, names: tuple[str, ...]) -> int | None:
    """The index of the name that this is, or is the start of."""
    if len(name) < MIN_NAME:
        return None
    return next((index for index, each in enumerate(names) if each.startswith(name)), None)


def read_time(text: str) -> str | None:
    """The time of day as `HH:MM`; None where the words mean none."""
    words = "".join(text.lower().split()).removeprefix("at")
    named = {"noon": "12:00", "midday": "12:00", "midnight": "00:00"}
    if words in named:
        return named[words]
    found = re.fullmatch(r"(\d{1,2})(?:[:.h](\d{2})(?::\d{2})?)?(am|pm|a\.m\.?|p\.m\.?)?", words)
    if not found:
        return None
    hour, minute = int(found[1]), int(found[2] or 0)
    if half := found[3]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half[0] == "p")
    return time(hour, minute).isoformat("minutes") if hour < 24 and minute < 60 else None


def week_of(day: date) -> tuple[date, date]:
    """Monday and Sunday of the day's week."""
    monday = day - day.weekday() * ONE_DAY
    return monday, monday + (WEEK - 1) * ONE_DAY


def _add_months(day: date, months: int) -> date:
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _month_end(day: date) -> date:
    return day.replace(day=monthrange(day.year, day.month)[1])
