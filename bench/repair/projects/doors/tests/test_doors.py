import pytest

from doors import matches, may_open, parse

RULES = ["+*:hall", "+staff:floor1/*", "-staff:floor1/lab", "+chief:*"]


def test_parse():
    assert parse("-guest:floor1/lab") == (False, "guest", "floor1/lab")
    with pytest.raises(ValueError):
        parse("guest:hall")


def test_matches():
    assert matches("floor1/*", "floor1/lab")
    assert not matches("floor1", "floor1/lab")


def test_everybody():
    assert may_open(RULES, set(), "hall")
    assert not may_open(RULES, set(), "floor1/a")


def test_last_rule_decides():
    assert may_open(RULES, {"staff"}, "floor1/a")
    assert not may_open(RULES, {"staff"}, "floor1/lab")
    assert may_open(RULES, {"staff", "chief"}, "floor1/lab")
