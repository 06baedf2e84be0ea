import pytest

from schedule import Slot, conflicts, free, merge, overlap, parse_slot, parse_time


def test_times():
    assert parse_time("09:30") == 570
    with pytest.raises(ValueError):
        parse_time("10:75")


def test_slot_must_end_later():
    with pytest.raises(ValueError):
        parse_slot("10:00-10:00")


def test_touching_is_no_overlap():
    assert not overlap(Slot(0, 60), Slot(60, 90))
    assert overlap(Slot(0, 61), Slot(60, 90))


def test_merge():
    assert merge([Slot(60, 90), Slot(0, 60), Slot(100, 120)]) == [Slot(0, 90), Slot(100, 120)]


def test_merge_of_a_slot_inside_another():
    assert merge([Slot(0, 100), Slot(20, 30)]) == [Slot(0, 100)]


def test_free_gaps():
    opening = parse_slot("08:00-17:00")
    busy = [parse_slot("09:00-10:00"), parse_slot("16:00-18:00")]
    assert free(busy, opening) == [parse_slot("08:00-09:00"), parse_slot("10:00-16:00")]


def test_whole_day_is_free():
    assert free([], Slot(480, 600)) == [Slot(480, 600)]


def test_gaps_of_a_least_length():
    assert free([Slot(10, 50)], Slot(0, 100), least=20) == [Slot(50, 100)]


def test_conflicts():
    slots = {"b": Slot(0, 60), "a": Slot(30, 90), "c": Slot(90, 100)}
    assert conflicts(slots) == [("a", "b")]
