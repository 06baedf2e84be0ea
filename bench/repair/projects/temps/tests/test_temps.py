import pytest

from temps import averages, read, warmest

LOG = """
# a week
mon 8 10.5
mon 14 21

tue 14 -3
"""


def test_read():
    assert read(LOG) == [("mon", 8, 10.5), ("mon", 14, 21.0), ("tue", 14, -3.0)]


def test_wrong_line():
    with pytest.raises(ValueError):
        read("mon 8")


def test_warmest():
    assert warmest(LOG) == ("mon", 14)
    assert warmest("") is None


def test_averages():
    assert averages(LOG) == {"mon": 15.8, "tue": -3.0}
