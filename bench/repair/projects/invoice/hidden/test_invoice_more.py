import pytest

from invoice import Invoice, Line, money, summary


@pytest.mark.parametrize(
    ("price", "quantity", "discount", "amount"), [(333, 1, 50, 167), (100, 7, 0, 700), (5, 1, 100, 0), (99, 2, 25, 149)]
)
def test_amounts(price, quantity, discount, amount):
    assert Line("x", price, quantity, discount).amount() == amount


def test_other_price_is_another_line():
    invoice = Invoice()
    invoice.add("pen", 100)
    invoice.add("pen", 90)
    invoice.add("pen", 100, 1, 10)
    assert [line.quantity for line in invoice.lines] == [1, 1, 1]
    assert invoice.subtotal() == 280


@pytest.mark.parametrize(("price", "percent", "tax"), [(1012, 20, 202), (1013, 20, 203), (50, 7, 4), (0, 20, 0)])
def test_taxes(price, percent, tax):
    invoice = Invoice(tax_percent=percent)
    invoice.add("x", price)
    assert invoice.tax() == tax
    assert invoice.total() == price + tax


def test_payments():
    invoice = Invoice(tax_percent=10)
    invoice.add("x", 1000)
    assert [invoice.pay(600), invoice.due(), invoice.pay(600), invoice.pay(5)] == [0, 500, 100, 5]
    with pytest.raises(ValueError):
        invoice.pay(0)


@pytest.mark.parametrize("discount", [-1, 101])
def test_wrong_discounts(discount):
    with pytest.raises(ValueError):
        Invoice().add("x", 1, 1, discount)


@pytest.mark.parametrize(("cents", "text"), [(0, "0.00"), (5, "0.05"), (-123456789, "-1,234,567.89"), (100, "1.00")])
def test_money(cents, text):
    assert money(cents) == text


def test_largest_line():
    invoice = Invoice()
    assert invoice.largest_line() == ""
    invoice.add("cheap", 10, 50)
    invoice.add("dear", 400)
    invoice.add("last", 500)
    invoice.add("also", 100, 5)
    assert invoice.largest_line() == "cheap"


def test_summary_aligns():
    invoice = Invoice(tax_percent=0)
    invoice.add("a", 1)
    invoice.add("long name", 100000)
    lines = summary(invoice).splitlines()
    assert lines == ["1 x a              0.01", "1 x long name  1,000.00", "tax                0.00", "total          1,000.01"]
