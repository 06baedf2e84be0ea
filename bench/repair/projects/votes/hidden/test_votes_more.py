import pytest

from votes import invalid, points, winners


@pytest.mark.parametrize(
    ("ballots", "bad", "counted", "best"),
    [
        ([], 0, {}, []),
        ([[]], 1, {}, []),
        ([["x"]], 0, {"x": 3}, ["x"]),
        ([["a", "b", "c", "d", "e"]], 0, {"a": 3, "b": 2, "c": 1}, ["a"]),
        ([["a", "b", "a"], ["c"]], 1, {"c": 3}, ["c"]),
        ([["a", "b"], ["b", "a"], ["z", "a", "b"]], 0, {"a": 7, "b": 6, "z": 3}, ["a"]),
        ([["q", "p"], ["p", "q"], ["q", "q"], []], 2, {"p": 5, "q": 5}, ["p", "q"]),
    ],
)
def test_counts(ballots, bad, counted, best):
    assert invalid(ballots) == bad
    assert points(ballots) == counted
    assert winners(ballots) == best
