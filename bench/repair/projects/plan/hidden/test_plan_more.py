import pytest

from plan import Cycle, Plan


def made(*tasks):
    plan = Plan()
    for name, days, *needs in tasks:
        plan.add(name, days, *needs)
    return plan


def test_empty():
    assert made().order() == []
    assert made().length() == 0
    assert made().critical() == []


def test_alphabetical_where_free():
    assert made(("c", 1), ("b", 1, "c"), ("a", 1, "b"), ("d", 1)).order() == ["c", "b", "a", "d"]
    assert made(("z", 1), ("y", 1), ("x", 1)).order() == ["x", "y", "z"]


def test_longer_cycles():
    with pytest.raises(Cycle) as caught:
        made(("s", 1, "t"), ("t", 1, "u"), ("u", 1, "s"), ("free", 1)).order()
    assert caught.value.names == ["s", "t", "u", "s"]
    with pytest.raises(Cycle) as caught:
        made(("a", 1, "b"), ("b", 1, "c"), ("c", 1, "b")).order()
    assert caught.value.names == ["b", "c", "b"]


def test_the_slowest_need_counts():
    plan = made(("x", 9), ("y", 2), ("z", 1, "y", "x"), ("w", 3, "y"))
    assert plan.starts() == {"x": 0, "y": 0, "z": 9, "w": 2}
    assert plan.length() == 10
    assert plan.critical() == ["x", "z"]


def test_end_is_not_always_the_last_task():
    plan = made(("a", 20), ("b", 1), ("c", 1, "b"))
    assert plan.length() == 20
    assert plan.critical() == ["a"]


def test_affected():
    plan = made(("a", 1), ("b", 1, "a"), ("c", 1, "b"), ("d", 1, "c", "a"), ("e", 1))
    assert plan.affected("a") == {"b", "c", "d"}
    assert plan.affected("d") == set()
    assert plan.affected("b") == {"c", "d"}


def test_equal_chains():
    assert made(("b", 2), ("a", 2), ("z", 1, "b", "a")).critical() == ["a", "z"]


def test_wrong_tasks():
    plan = made(("a", 1))
    for days, name in ((0, "b"), (1, "a")):
        with pytest.raises(ValueError):
            plan.add(name, days)
