import pytest

from depot import Depot, OutOfStock


def depot(**stock):
    made = Depot()
    for name, count in stock.items():
        made.deliver(name, count)
    return made


def test_orders_are_independent():
    made = depot(a=10, b=10)
    first = made.reserve({"a": 2, "b": 3})
    second = made.reserve({"a": 5})
    made.ship(first)
    assert (made.articles["a"].stock, made.articles["a"].reserved) == (8, 5)
    made.cancel(second)
    assert (made.articles["a"].available, made.articles["b"].available) == (8, 7)
    assert first != second
    with pytest.raises(KeyError):
        made.ship(first)


@pytest.mark.parametrize("wanted", [{"a": 4}, {"x": 1}, {"a": 1, "b": 2}, {"b": 1, "a": 9}])
def test_refused_orders(wanted):
    made = depot(a=3, b=1)
    with pytest.raises(OutOfStock):
        made.reserve(wanted)
    assert made.articles["a"].reserved == made.articles["b"].reserved == 0
    assert made.orders == {}


def test_everything_can_be_reserved():
    made = depot(a=3)
    made.reserve({"a": 1})
    made.reserve({"a": 2})
    assert made.articles["a"].available == 0
    with pytest.raises(OutOfStock):
        made.reserve({"a": 1})


def test_what_to_order():
    made = Depot()
    made.deliver("z", 5, minimum=5)
    made.deliver("y", 4, minimum=5)
    made.deliver("x", 0, minimum=1)
    made.deliver("w", 9)
    assert made.to_order() == {"x": 2, "y": 6}
    assert list(made.to_order()) == ["x", "y"]
    assert made.to_order(factor=3) == {"x": 3, "y": 11}
    made.reserve({"z": 1})
    assert made.to_order() == {"x": 2, "y": 6, "z": 6}


def test_inventory():
    made = depot(a=5, b=2, c=0)
    assert made.take_inventory({"a": 5, "b": 1}) == {"b": -1}
    assert [article.stock for article in made.articles.values()] == [5, 1, 0]
    assert made.take_inventory({"c": 4, "a": 6}) == {"a": 1, "b": -1, "c": 4}


def test_reports():
    made = depot(b=1, a=2, c=0)
    number = made.reserve({"a": 2})
    assert made.report() == ["a: 2 (2 reserved)", "b: 1"]
    made.ship(number)
    assert made.report() == ["b: 1"]


def test_minimum_can_become_zero():
    made = Depot()
    made.deliver("a", 1, minimum=5)
    made.deliver("a", 0, minimum=0)
    assert made.to_order() == {}
    with pytest.raises(ValueError):
        made.deliver("a", -1)
