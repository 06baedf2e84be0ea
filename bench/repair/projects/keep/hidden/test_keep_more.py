import pytest

from keep import Cache


def cache(size, seconds, times):
    now = iter(times)
    state = {"now": 0.0}

    def clock():
        return state["now"]

    def tick():
        state["now"] = next(now)

    return Cache(size, seconds, clock), tick


def test_order_of_use():
    made, _ = cache(3, 5, [])
    for key in "abc":
        made.put(key, key)
    made.get("b")
    made.put("a", "new")
    assert made.keys() == ["c", "b", "a"]
    made.put("d", 1)
    made.put("e", 1)
    assert made.keys() == ["a", "d", "e"]
    assert made.get("a") == "new"


def test_asking_is_not_use():
    made, _ = cache(2, 5, [])
    made.put(1, 1)
    made.put(2, 2)
    assert 1 in made
    made.put(3, 3)
    assert 1 not in made
    assert (made.hits, made.misses) == (0, 0)


def test_ages():
    made, tick = cache(5, 3, [1, 2.5, 3, 4, 9])
    made.put("a", 1)
    tick()
    made.put("b", 2)
    tick()
    assert made.purge() == 0
    tick()
    assert made.purge() == 1
    assert made.keys() == ["b"]
    tick()
    assert made.get("b", "gone") == "gone"
    assert made.misses == 1
    assert len(made) == 0


def test_rewriting_makes_it_fresh():
    made, tick = cache(2, 10, [8, 15])
    made.put("a", 1)
    tick()
    made.put("a", 2)
    tick()
    assert made.get("a") == 2


def test_make_only_when_missing():
    made, tick = cache(2, 10, [10])
    assert made.get_or_make("a", lambda: 0) == 0
    assert made.get_or_make("a", lambda: 1) == 0
    tick()
    assert made.get_or_make("a", lambda: 2) == 2


def test_numbers():
    made, _ = cache(1, 1, [])
    assert made.hit_rate() == 0
    made.put("a", 1)
    for _ in range(3):
        made.get("a")
    made.get("z")
    assert made.hit_rate() == 0.75
    with pytest.raises(ValueError):
        Cache(0, 1, lambda: 0)
