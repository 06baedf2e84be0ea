from keep import Cache


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def cache(size=2, seconds=10):
    clock = Clock()
    return Cache(size, seconds, clock), clock


def test_put_and_get():
    made, _ = cache()
    made.put("a", 1)
    assert made.get("a") == 1
    assert made.get("b", 7) == 7


def test_unused_for_longest_goes():
    made, _ = cache()
    made.put("a", 1)
    made.put("b", 2)
    made.get("a")
    made.put("c", 3)
    assert made.keys() == ["a", "c"]


def test_writing_again_is_use():
    made, _ = cache()
    made.put("a", 1)
    made.put("b", 2)
    made.put("a", 3)
    made.put("c", 4)
    assert made.keys() == ["a", "c"]


def test_entries_grow_old():
    made, clock = cache()
    made.put("a", 1)
    clock.now = 9.9
    assert "a" in made
    clock.now = 10
    assert made.get("a") is None
    assert len(made) == 0


def test_old_entries_go_before_fresh_ones():
    made, clock = cache()
    made.put("a", 1)
    clock.now = 5
    made.put("b", 2)
    made.get("a")
    clock.now = 11
    made.put("c", 3)
    assert made.keys() == ["b", "c"]


def test_none_is_made_once():
    made, _ = cache()
    calls = []
    for _ in range(2):
        assert made.get_or_make("a", lambda: calls.append(1)) is None
    assert calls == [1]


def test_hit_rate():
    made, _ = cache()
    made.put("a", 1)
    made.get("a")
    made.get("b")
    assert made.hit_rate() == 0.5
