import pytest

from spans import billed, clock, long, parse, round_up, short, split


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2w", 1209600), ("1d,2h", 93600), (" 45S ", 45), ("1d 0.5h 1s", 88201), ("-1h 1m", -3660), ("3 m", 180), ("0s", 0)],
)
def test_parse(text, seconds):
    assert parse(text) == seconds


@pytest.mark.parametrize("text", ["", "-", "5", "h", "1x", "1m 2h", "1h 2h", "1s 1s", "1h and 2m", "2m 3m"])
def test_wrong(text):
    with pytest.raises(ValueError):
        parse(text)


@pytest.mark.parametrize(("seconds", "text"), [(59, "59s"), (604800, "1w"), (3601, "1h 1s"), (-90, "-1m 30s"), (172800, "2d")])
def test_short(seconds, text):
    assert short(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "most", "text"),
    [(0, 2, "0 seconds"), (1, 2, "1 second"), (3600, 2, "1 hour"), (3661, 1, "1 hour"), (7322, 3, "2 hours, 2 minutes and 2 seconds"), (604801, 2, "1 week and 1 second")],
)
def test_long(seconds, most, text):
    assert long(seconds, most) == text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (60, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (36005, "10:00:05"), (3660, "1:01:00")])
def test_clock(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize(("seconds", "step", "rounded"), [(0, 60, 0), (1, 60, 60), (60, 60, 60), (61, 60, 120), (7, 5, 10)])
def test_round_up(seconds, step, rounded):
    assert round_up(seconds, step) == rounded


def test_billed():
    assert billed([1, 1, 1], step=60) == 180
    assert billed([60, 120], step=60) == 180
    assert billed([0], least=5) == 5
    assert billed([], least=5) == 0
    assert billed([3600], least=60) == 3600
    with pytest.raises(ValueError):
        round_up(1, 0)


def test_split():
    assert split(0) == {}
    assert split(691200) == {"w": 1, "d": 1}
