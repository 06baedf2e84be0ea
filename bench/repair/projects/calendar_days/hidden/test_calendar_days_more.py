import datetime

import pytest

from calendar_days import Day, add_months, age, between, is_leap, month_length, next_day, number, parse, weekday, working_days

SOME = [datetime.date(1999, 12, 31) + datetime.timedelta(days=97 * step) for step in range(60)]


def ours(date):
    return Day(date.year, date.month, date.day)


def test_against_the_library():
    for date in SOME:
        assert number(ours(date)) == date.toordinal() - 1
        assert weekday(ours(date)) == date.strftime("%A")
        assert next_day(ours(date)) == ours(date + datetime.timedelta(days=1))
        assert parse(date.isoformat()) == ours(date)
        assert str(ours(date)) == date.isoformat()


@pytest.mark.parametrize(("year", "leap"), [(2100, False), (2400, True), (1996, True), (1, False), (4, True)])
def test_leap_years(year, leap):
    assert is_leap(year) is leap
    assert month_length(year, 2) == (29 if leap else 28)


@pytest.mark.parametrize("text", ["2024-13-01", "2024-00-10", "2024-04-31", "2024-4", "x-y-z", "2100-02-29", "2024-01-00"])
def test_no_days(text):
    with pytest.raises(ValueError):
        parse(text)


@pytest.mark.parametrize(
    ("day", "months", "result"),
    [((2024, 1, 31), 3, (2024, 4, 30)), ((2024, 11, 30), 3, (2025, 2, 28)), ((2024, 12, 1), 1, (2025, 1, 1)), ((2024, 12, 5), 12, (2025, 12, 5)), ((2024, 3, 31), -1, (2024, 2, 29)), ((2024, 5, 7), 0, (2024, 5, 7)), ((2020, 2, 29), 48, (2024, 2, 29))],
)
def test_add_months(day, months, result):
    assert add_months(Day(*day), months) == Day(*result)


def test_between():
    assert between(Day(2024, 3, 1), Day(2023, 3, 1)) == -366
    assert between(Day(2000, 1, 1), Day(2024, 1, 1)) == 8766


def test_working_days():
    assert working_days(Day(2024, 3, 2), Day(2024, 3, 3)) == 0
    assert working_days(Day(2024, 2, 29), Day(2024, 2, 29)) == 1
    assert working_days(Day(2024, 3, 2), Day(2024, 3, 1)) == 0
    assert working_days(Day(2023, 12, 25), Day(2024, 1, 7), {Day(2023, 12, 25), Day(2023, 12, 26), Day(2024, 1, 6)}) == 8


@pytest.mark.parametrize(("today", "years"), [((2001, 2, 28), 0), ((2001, 3, 1), 1), ((2004, 2, 29), 4), ((2024, 12, 31), 24), ((2025, 1, 1), 24)])
def test_ages(today, years):
    assert age(Day(2000, 2, 29), Day(*today)) == years
