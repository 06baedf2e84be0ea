from datetime import date
from zoneinfo import ZoneInfo

import pytest

from handrail.protocol.errors import UsageProblem
from handrail.tasks.dates import read_date, read_time, user_zone

WEDNESDAY = date(2026, 11, 18)


@pytest.mark.promise("TASK-2")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("today", "2026-11-18"),
        ("Tomorrow", "2026-11-19"),
        ("yesterday", "2026-11-17"),
        ("fri", "2026-11-20"),
        ("on Friday", "2026-11-20"),
        ("wed", "2026-11-25"),
        ("Friday, 2026-11-20", "2026-11-20"),
        ("Fri 4 dec", "2026-12-04"),
        ("Friday 2026-11-21", None),
        ("next wed", "2026-11-25"),
        ("next friday", "2026-11-27"),
        ("next week", "2026-11-23"),
        ("weekend", "2026-11-21"),
        ("next month", "2026-12-01"),
        ("end of month", "2026-11-30"),
        ("in 3 days", "2026-11-21"),
        ("in a week", "2026-11-25"),
        ("+2w", "2026-12-02"),
        ("2026-12-01", "2026-12-01"),
        ("1 dec", "2026-12-01"),
        ("the 1st", "2026-12-01"),
        ("on the 18th", "2026-11-18"),
        ("31st", "2026-12-31"),
        ("the 3rd of december", "2026-12-03"),
        ("32nd", None),
        ("December 1st, 2027", "2027-12-01"),
        ("nov 17", "2027-11-17"),
        ("29 feb", "2028-02-29"),
        ("2026-12-01T23:30:00Z", "2026-12-02"),  # in Berlin it is the next day
        ("2026-13-01", None),
        ("31 feb", None),
        ("soon", None),
        ("in 99999 days", None),
        ("", None),
    ],
)
def test_words_mean_dates_in_the_zone_of_the_user(words: str, expected: str | None) -> None:
    found = read_date(words, WEDNESDAY, ZoneInfo("Europe/Berlin"))
    assert (found and found.isoformat()) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("9:30", "09:30"),
        ("9.30 pm", "21:30"),
        ("12 am", "00:00"),
        ("12pm", "12:00"),
        ("at 7pm", "19:00"),
        ("noon", "12:00"),
        ("08:15:00", "08:15"),
        ("13 pm", None),
        ("24:00", None),
        ("9", "09:00"),
        ("25", None),
        ("later", None),
    ],
)
def test_words_mean_times_of_day(words: str, expected: str | None) -> None:
    assert read_time(words) == expected


def test_the_zone_is_the_setting_then_that_of_the_environment_and_a_wrong_setting_is_an_error() -> None:
    assert user_zone("Asia/Tokyo", {"TZ": "Europe/Berlin"}).key == "Asia/Tokyo"
    assert user_zone("", {"TZ": "Europe/Berlin"}).key == "Europe/Berlin"
    with pytest.raises(UsageProblem, match="no time zone 'Mars'"):
        user_zone("Mars", {})
