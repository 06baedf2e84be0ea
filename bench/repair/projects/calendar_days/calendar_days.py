"""Days of the calendar by arithmetic alone: leap years, weekdays, month ends, working days."""

from typing import NamedTuple

LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Day(NamedTuple):
    year: int
    month: int
    day: int

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}-{self.day:02}"


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    return 29 if month == 2 and is_leap(year) else LENGTHS[month - 1]


def parse(text: str) -> Day:
    """The day of a text such as 2024-02-29."""
    parts = text.split("-")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise ValueError(f"not a day: {text}")
    year, month, day = map(int, parts)
    if not 1 <= month <= 12 or not 1 <= day <= month_length(year, month):
        raise ValueError(f"there is no such day: {text}")
    return Day(year, month, day)


def number(day: Day) -> int:
    """Days since 0001-01-01, which is 0."""
    years = day.year - 1
    before = years * 365 + years // 4 - years // 100 + years // 400
    months = sum(month_length(day.year, month) for month in range(1, day.month))
    return before + months + day.day - 1


def weekday(day: Day) -> str:
    """0001-01-01 was a Monday."""
    return WEEKDAYS[number(day) % 7]


def next_day(day: Day) -> Day:
    if day.day < month_length(day.year, day.month):
        return Day(day.year, day.month, day.day + 1)
    if day.month < 12:
        return Day(day.year, day.month + 1, 1)
    return Day(day.year + 1, 1, 1)


def add_months(day: Day, months: int) -> Day:
    """The same day so many months later or earlier; the last of the month where it has no such day."""
    total = day.year * 12 + day.month - 1 + months
    year, month = total // 12, total % 12 + 1
    return Day(year, month, min(day.day, month_length(year, month)))


def between(first: Day, last: Day) -> int:
    """Days from the first to the last; negative where the last is earlier."""
    return number(last) - number(first)


def working_days(first: Day, last: Day, holidays: set[Day] | None = None) -> int:
    """Days from Monday to Friday that are no holidays, the first and the last day included."""
    count = 0
    day = first
    while day <= last:
        if weekday(day) not in ("Saturday", "Sunday") and day not in (holidays or set()):
            count += 1
        day = next_day(day)
    return count


def age(born: Day, today: Day) -> int:
    """Whole years; who was born on 29 February has a birthday on 1 March in other years."""
    had = (today.month, today.day) >= (born.month, born.day)
    return today.year - born.year - (0 if had else 1)
