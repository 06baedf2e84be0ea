import pytest

from plan import Cycle, Plan


def house():
    plan = Plan()
    plan.add("roof", 3, "walls")
    plan.add("walls", 5, "ground")
    plan.add("ground", 2)
    plan.add("garden", 4, "ground")
    plan.add("party", 1, "roof", "garden")
    return plan


def test_order():
    assert house().order() == ["ground", "garden", "walls", "roof", "party"]


def test_cycle_is_named():
    plan = Plan()
    plan.add("a", 1, "b")
    plan.add("b", 1, "a")
    with pytest.raises(Cycle) as caught:
        plan.order()
    assert caught.value.names == ["a", "b", "a"]


def test_missing():
    plan = Plan()
    plan.add("a", 1, "z", "y")
    assert plan.missing() == ["y", "z"]
    with pytest.raises(KeyError):
        plan.order()


def test_starts():
    assert house().starts() == {"ground": 0, "garden": 2, "walls": 2, "roof": 7, "party": 10}


def test_length():
    assert house().length() == 11


def test_affected():
    assert house().affected("walls") == {"roof", "party"}
    assert house().affected("ground") == {"walls", "garden", "roof", "party"}


def test_critical():
    assert house().critical() == ["ground", "walls", "roof", "party"]
