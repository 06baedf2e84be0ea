import pytest

from ring import Ring


def filled():
    ring = Ring(3)
    fallen = [ring.push(value) for value in (1, 2, 3, 4)]
    return ring, fallen


def test_push():
    assert filled()[1] == [None, None, None, 1]


def test_values():
    assert filled()[0].values() == [2, 3, 4]
    assert len(filled()[0]) == 3


def test_last():
    assert filled()[0].last(2) == [4, 3]


def test_mean():
    assert filled()[0].mean() == 3
    assert Ring(2).mean() == 0.0


def test_size():
    with pytest.raises(ValueError):
        Ring(0)
