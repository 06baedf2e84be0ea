import pytest

from ledger import Bank, Refused


def bank(fee=0):
    made = Bank(fee)
    made.open("ann").book(1, 1000, "start")
    made.open("bob", overdraft=200)
    return made


def test_transfer():
    made = bank()
    made.transfer(2, "ann", "bob", 300)
    assert made.accounts["ann"].balance == 700
    assert made.accounts["bob"].balance == 300


def test_fee_is_paid_by_the_giver():
    made = bank(fee=10)
    made.transfer(2, "ann", "bob", 300)
    assert made.accounts["ann"].balance == 670
    assert made.fees == 30


def test_fee_must_be_covered():
    made = bank(fee=10)
    with pytest.raises(Refused):
        made.transfer(2, "ann", "bob", 1000)
    assert made.accounts["ann"].balance == 1000


def test_overdraft():
    made = bank()
    made.transfer(2, "bob", "ann", 200)
    assert made.accounts["bob"].balance == -200
    with pytest.raises(Refused):
        made.transfer(2, "bob", "ann", 1)


def test_balance_on_a_day():
    made = bank()
    made.transfer(3, "ann", "bob", 100)
    assert [made.accounts["ann"].balance_on(day) for day in (0, 1, 2, 3)] == [0, 1000, 1000, 900]


def test_statement():
    made = bank()
    made.transfer(3, "ann", "bob", 100)
    made.transfer(5, "ann", "bob", 50)
    assert made.accounts["ann"].statement(3, 4) == [(3, "to bob", -100, 900)]


def test_richest():
    made = bank()
    made.open("abe").book(1, 1000, "start")
    assert made.richest(2) == ["abe", "ann"]


def test_total_stays():
    made = bank(fee=3)
    made.transfer(2, "ann", "bob", 500)
    assert made.total() == 1000
