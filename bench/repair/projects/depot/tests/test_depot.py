import pytest

from depot import Depot, OutOfStock


def depot():
    made = Depot()
    made.deliver("nails", 10, minimum=5)
    made.deliver("glue", 3)
    return made


def test_deliveries_add_up():
    made = depot()
    made.deliver("nails", 5)
    assert made.articles["nails"].stock == 15
    assert made.articles["nails"].minimum == 5


def test_reserve_and_ship():
    made = depot()
    number = made.reserve({"nails": 4})
    assert made.articles["nails"].available == 6
    assert made.ship(number) == {"nails": 4}
    assert made.articles["nails"].stock == 6
    assert made.articles["nails"].reserved == 0


def test_nothing_is_reserved_when_one_is_short():
    made = depot()
    with pytest.raises(OutOfStock):
        made.reserve({"nails": 4, "glue": 9})
    assert made.articles["nails"].available == 10


def test_reserved_articles_cannot_be_reserved_again():
    made = depot()
    made.reserve({"glue": 2})
    with pytest.raises(OutOfStock):
        made.reserve({"glue": 2})


def test_cancel():
    made = depot()
    made.cancel(made.reserve({"glue": 3}))
    assert made.articles["glue"].available == 3
    assert made.articles["glue"].stock == 3


def test_to_order():
    made = depot()
    made.reserve({"nails": 8})
    assert made.to_order() == {"nails": 8}


def test_inventory():
    made = depot()
    assert made.take_inventory({"nails": 12}) == {"nails": 2, "glue": -3}
    assert made.articles["glue"].stock == 0


def test_report():
    made = depot()
    made.reserve({"nails": 3})
    assert made.report() == ["glue: 3", "nails: 10 (3 reserved)"]
