import pytest

from ledger import Bank, Refused


def bank(fee=0):
    made = Bank(fee)
    for name, cents in (("x", 500), ("y", 40), ("z", 500)):
        made.open(name).book(1, cents, "start")
    return made


@pytest.mark.parametrize(("amount", "fee"), [(99, 4), (100, 5), (1, 0), (19, 0), (20, 1)])
def test_fees(amount, fee):
    made = bank(fee=5)
    made.transfer(1, "x", "y", amount)
    assert made.fees == fee
    assert made.accounts["x"].balance == 500 - amount - fee
    assert made.total() == 1040


@pytest.mark.parametrize(("giver", "taker", "amount"), [("x", "y", 0), ("x", "y", -5), ("q", "x", 1), ("x", "q", 1), ("y", "x", 41)])
def test_refused_transfers_change_nothing(giver, taker, amount):
    made = bank()
    with pytest.raises(Refused):
        made.transfer(1, giver, taker, amount)
    assert [account.balance for account in made.accounts.values()] == [500, 40, 500]


def test_exactly_enough():
    made = bank(fee=25)
    made.transfer(1, "x", "y", 400)
    assert made.accounts["x"].balance == 0
    with pytest.raises(Refused):
        made.transfer(1, "z", "y", 401)


def test_statement_is_in_order_of_days():
    account = bank().accounts["x"]
    account.book(9, -20, "late")
    account.book(4, -30, "early")
    account.book(6, 10, "middle")
    assert account.statement(2, 9) == [(4, "early", -30, 470), (6, "middle", 10, 480), (9, "late", -20, 460)]
    assert account.statement(5, 8) == [(6, "middle", 10, 480)]
    assert account.statement(10, 20) == []


def test_richest():
    made = bank()
    assert made.richest() == ["x"]
    assert made.richest(5) == ["x", "z", "y"]


def test_one_account_each():
    with pytest.raises(Refused):
        bank().open("x")
