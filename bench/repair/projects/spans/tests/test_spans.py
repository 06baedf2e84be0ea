import pytest

from spans import billed, clock, long, parse, round_up, short, split


def test_parse():
    assert parse("1h 30m") == 5400
    assert parse("-2d") == -172800
    assert parse("1.5h") == 5400


def test_wrong_order():
    with pytest.raises(ValueError):
        parse("30m 1h")


def test_unit_twice():
    with pytest.raises(ValueError):
        parse("1h 1h")


def test_split():
    assert split(90061) == {"d": 1, "h": 1, "m": 1, "s": 1}


def test_short():
    assert short(5400) == "1h 30m"
    assert short(0) == "0s"
    assert short(-60) == "-1m"


def test_long():
    assert long(5400) == "1 hour and 30 minutes"
    assert long(90061, most=3) == "1 day, 1 hour and 1 minute"


def test_clock():
    assert clock(5) == "0:05"
    assert clock(750) == "12:30"
    assert clock(3723) == "1:02:03"


def test_round_up():
    assert round_up(901, 900) == 1800
    assert round_up(900, 900) == 900


def test_billed():
    assert billed([100, 901]) == 2700
    assert billed([100], least=3600) == 3600
    assert billed([], least=3600) == 0
