import pytest

from schedule import Slot, conflicts, free, merge, overlap, parse_slot, parse_time


@pytest.mark.parametrize(("text", "minutes"), [("00:00", 0), ("24:00", 1440), ("7:05", 425), ("23:59", 1439)])
def test_times(text, minutes):
    assert parse_time(text) == minutes


@pytest.mark.parametrize("text", ["24:01", "x", "1200", "12:60", "-1:00", ""])
def test_wrong_times(text):
    with pytest.raises(ValueError):
        parse_time(text)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [((0, 10), (10, 20), False), ((10, 20), (0, 10), False), ((0, 30), (10, 20), True), ((5, 6), (0, 30), True), ((0, 5), (7, 9), False)],
)
def test_overlaps(one, other, both):
    assert overlap(Slot(*one), Slot(*other)) is both


def test_merge_more():
    assert merge([]) == []
    assert merge([Slot(5, 9), Slot(0, 20), Slot(19, 25), Slot(30, 31)]) == [Slot(0, 25), Slot(30, 31)]
    assert merge([Slot(3, 4), Slot(2, 3), Slot(1, 2)]) == [Slot(1, 4)]


def test_free_more():
    assert free([Slot(0, 500)], Slot(100, 200)) == []
    assert free([Slot(300, 400)], Slot(100, 200)) == [Slot(100, 200)]
    assert free([Slot(50, 120), Slot(150, 160), Slot(155, 170)], Slot(100, 200)) == [Slot(120, 150), Slot(170, 200)]
    assert free([Slot(30, 40)], Slot(0, 50), least=10) == [Slot(0, 30), Slot(40, 50)]
    assert free([Slot(30, 40)], Slot(0, 50), least=11) == [Slot(0, 30)]


def test_conflicts_more():
    assert conflicts({}) == []
    slots = {"z": Slot(0, 10), "y": Slot(5, 15), "x": Slot(9, 11), "w": Slot(15, 20)}
    assert conflicts(slots) == [("x", "y"), ("x", "z"), ("y", "z")]


def test_slots():
    assert parse_slot("00:00-24:00").minutes == 1440
    with pytest.raises(ValueError):
        parse_slot("12:00-11:59")
