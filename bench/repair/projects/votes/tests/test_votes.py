from votes import invalid, points, winners

BALLOTS = [["ann", "bob"], ["bob", "cid", "ann", "dan"], [], ["ann", "ann"]]


def test_invalid():
    assert invalid(BALLOTS) == 2


def test_points():
    assert points(BALLOTS) == {"ann": 4, "bob": 5, "cid": 2}


def test_winner():
    assert winners(BALLOTS) == ["bob"]


def test_tie():
    assert winners([["b"], ["a"]]) == ["a", "b"]
