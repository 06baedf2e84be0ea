import pytest

from invoice import Invoice, Line, money, summary


def test_amount_of_a_discounted_line():
    assert Line("pen", 199, 3, 10).amount() == 537


def test_same_line_grows():
    invoice = Invoice()
    invoice.add("pen", 100)
    invoice.add("pen", 100, 2)
    assert [line.quantity for line in invoice.lines] == [3]


def test_same_name_with_another_discount_is_another_line():
    invoice = Invoice()
    invoice.add("pen", 100)
    invoice.add("pen", 100, 1, 50)
    assert invoice.subtotal() == 150


def test_tax_and_total():
    invoice = Invoice()
    invoice.add("book", 1999)
    assert (invoice.tax(), invoice.total()) == (400, 2399)


def test_pay_returns_the_change():
    invoice = Invoice(tax_percent=0)
    invoice.add("book", 1000)
    assert invoice.pay(400) == 0
    assert invoice.pay(1000) == 400
    assert invoice.due() == 0


def test_wrong_quantity():
    with pytest.raises(ValueError):
        Invoice().add("pen", 100, 0)


def test_money():
    assert money(123405) == "1,234.05"
    assert money(-50) == "-0.50"


def test_largest_line():
    invoice = Invoice()
    invoice.add("a", 300)
    invoice.add("b", 300)
    assert invoice.largest_line() == "a"


def test_summary():
    invoice = Invoice(tax_percent=10)
    invoice.add("pen", 150, 2)
    assert summary(invoice) == "2 x pen  3.00\ntax      0.30\ntotal    3.30"
