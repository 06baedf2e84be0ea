from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import DAILY, FR, MO, MONTHLY, TH, TU, WE, WEEKLY, rrule
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.protocol.task import Recurrence, RepeatKind, Task
from handrail.tasks.recurrence import instant, next_occurrence, occurrences, open_occurrence

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
]
"""Most change their clocks in the first hours of a day, which half of the times are in."""
DAYS = st.dates(date(2020, 1, 1), date(2030, 12, 31))
KINDS: list[RepeatKind] = ["daily", "weekdays", "weekly", "monthly", "every_n_days"]


def expected(rule: Recurrence, start: datetime, until: datetime) -> list[datetime]:
    """What dateutil says; both ends are wall times of the same zone."""
    match rule.type:
        case "daily":
            found = rrule(DAILY, dtstart=start, until=until)
        case "weekdays":
            found = rrule(DAILY, dtstart=start, until=until, byweekday=(MO, TU, WE, TH, FR))
        case "weekly":
            found = rrule(WEEKLY, dtstart=start, until=until)
        case "monthly" if start.day > 28:
            found = rrule(
                MONTHLY, dtstart=start, until=until, bymonthday=range(28, start.day + 1), bysetpos=-1
            )
        case "monthly":
            found = rrule(MONTHLY, dtstart=start, until=until)
        case _:
            found = rrule(DAILY, interval=rule.days, dtstart=start, until=until)
    return list(found)


@pytest.mark.promise("TASK-3")
@settings(deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    days=st.integers(1, 400),
    anchor=DAYS,
    length=st.integers(0, 900),
    at=(st.times(max_value=time(3, 59)) | st.times()).map(lambda each: each.replace(second=0, microsecond=0)),
    zone=st.sampled_from(ZONES),
)
def test_occurrences_are_those_of_dateutil_to_the_second(
    *, kind: RepeatKind, days: int, anchor: date, length: int, at: time, zone: str
) -> None:
    until = anchor + timedelta(days=length)
    rule = Recurrence(kind, days, until.isoformat())
    task = Task("1", "x", scheduled_for=anchor.isoformat(), time=at.isoformat("minutes"), recurrence=rule)
    place = ZoneInfo(zone)
    ends = (datetime.combine(day, at, place) for day in (anchor, until))
    found = [instant(day, task.time, place) for day in occurrences(task, date(2000, 1, 1), date(2100, 1, 1))]
    assert found == [each.astimezone(UTC) for each in expected(rule, *ends)]


@settings(deadline=None)
@given(kind=st.sampled_from(KINDS), days=st.integers(1, 60), anchor=DAYS, day=DAYS)
def test_next_occurrence_is_the_first_that_is_not_before_the_day(
    kind: RepeatKind, days: int, anchor: date, day: date
) -> None:
    task = Task("1", "x", scheduled_for=anchor.isoformat(), recurrence=Recurrence(kind, days, "2031-12-31"))
    later = [each for each in occurrences(task, anchor, date(2031, 12, 31)) if each >= day]
    assert next_occurrence(task, day) == (later[0] if later else None)


@pytest.mark.parametrize(
    ("day", "at", "utc"),
    [
        ("2026-03-29", "02:30", "01:30"),  # the clock skips it: 03:30 in summer time
        ("2026-10-25", "02:30", "00:30"),  # it comes twice: the first
        ("2026-03-28", "02:30", "01:30"),
        ("2026-03-30", "02:30", "00:30"),
    ],
)
def test_a_time_of_day_stays_the_same_on_the_wall_when_the_clock_changes(day: str, at: str, utc: str) -> None:
    moment = instant(date.fromisoformat(day), at, ZoneInfo("Europe/Berlin"))
    assert moment.isoformat() == f"{day}T{utc}:00+00:00"


def test_monthly_on_the_31st_falls_on_the_last_day_of_shorter_months() -> None:
    task = Task("1", "x", scheduled_for="2027-12-31", recurrence=Recurrence("monthly", until="2028-04-30"))
    found = [str(each) for each in occurrences(task, date(2028, 1, 1), date(2028, 12, 31))]
    assert found == ["2028-01-31", "2028-02-29", "2028-03-31", "2028-04-30"]


def test_the_occurrence_to_complete_is_the_one_that_has_come_then_the_next() -> None:
    weekly = Recurrence("weekly", until="2026-12-31")
    task = Task("1", "x", scheduled_for="2026-11-02", recurrence=weekly)
    wednesday = date(2026, 11, 18)
    assert open_occurrence(task, wednesday) == date(2026, 11, 16)
    done = Task(
        "1", "x", scheduled_for="2026-11-02", recurrence=weekly, completed_occurrences=("2026-11-16",)
    )
    assert open_occurrence(done, wednesday) == date(2026, 11, 23)
    assert open_occurrence(task, date(2027, 3, 1)) is None
