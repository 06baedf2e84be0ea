import pytest

from calendar_days import Day, add_months, age, between, is_leap, next_day, parse, weekday, working_days


def test_leap_years():
    assert [is_leap(year) for year in (2023, 2024, 1900, 2000)] == [False, True, False, True]


def test_parse():
    assert parse("2024-02-29") == Day(2024, 2, 29)
    with pytest.raises(ValueError):
        parse("2023-02-29")


def test_weekday():
    assert weekday(Day(2024, 2, 29)) == "Thursday"


def test_next_day():
    assert next_day(Day(2023, 2, 28)) == Day(2023, 3, 1)
    assert next_day(Day(2023, 12, 31)) == Day(2024, 1, 1)


def test_add_months():
    assert add_months(Day(2024, 1, 31), 1) == Day(2024, 2, 29)
    assert add_months(Day(2024, 1, 15), -1) == Day(2023, 12, 15)


def test_between():
    assert between(Day(2024, 2, 28), Day(2024, 3, 1)) == 2


def test_working_days():
    assert working_days(Day(2024, 3, 1), Day(2024, 3, 11)) == 7
    assert working_days(Day(2024, 3, 1), Day(2024, 3, 4), {Day(2024, 3, 4)}) == 1


def test_age():
    assert age(Day(2000, 5, 20), Day(2024, 5, 19)) == 23
    assert age(Day(2000, 5, 20), Day(2024, 5, 20)) == 24
