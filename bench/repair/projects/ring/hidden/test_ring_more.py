import pytest

from ring import Ring


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_any_size(size):
    ring = Ring(size)
    fallen = [ring.push(value) for value in range(20)]
    assert fallen == [None] * size + list(range(20 - size))
    assert ring.values() == list(range(20 - size, 20))
    assert len(ring) == size
    assert ring.mean() == sum(range(20 - size, 20)) / size


def test_last():
    ring = Ring(4)
    assert ring.last(3) == []
    ring.push(7)
    ring.push(8)
    assert [ring.last(0), ring.last(1), ring.last(9)] == [[], [8], [8, 7]]


def test_zero_is_a_value():
    ring = Ring(1)
    ring.push(0)
    assert ring.push(5) == 0


def test_values_are_a_copy():
    ring = Ring(2)
    ring.push(1)
    ring.values().append(9)
    assert ring.values() == [1]
    with pytest.raises(ValueError):
        Ring(-1)
