import pytest

from parking import change, fee


@pytest.mark.parametrize(
    ("minutes", "cents"),
    [(0, 0), (1, 0), (59, 200), (120, 400), (121, 600), (360, 1200), (361, 1200), (1440, 1200), (1441, 1400), (1500, 1400), (1501, 1600), (2880, 2400), (4000, 3600)],
)
def test_fees(minutes, cents):
    assert fee(minutes) == cents


@pytest.mark.parametrize(("cents", "paid", "coins"), [(200, 200, []), (200, 1000, [200, 200, 200, 200]), (600, 990, [200, 100, 50, 20, 20]), (10, 100, [50, 20, 20])])
def test_change(cents, paid, coins):
    assert change(cents, paid) == coins


def test_lost_tickets():
    assert fee(5, lost=True) == fee(9999, lost=True) == 2500
    with pytest.raises(ValueError):
        change(10, 0)
