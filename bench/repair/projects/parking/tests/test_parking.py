import pytest

from parking import change, fee


def test_free_minutes():
    assert fee(15) == 0
    assert fee(16) == 200


def test_started_hours():
    assert [fee(60), fee(61), fee(180)] == [200, 400, 600]


def test_most_of_a_day():
    assert fee(10 * 60) == 1200


def test_days():
    assert fee(24 * 60 + 5) == 1400


def test_lost_ticket():
    assert fee(30, lost=True) == 2500


def test_change():
    assert change(380, 500) == [100, 20]
    with pytest.raises(ValueError):
        change(200, 100)
