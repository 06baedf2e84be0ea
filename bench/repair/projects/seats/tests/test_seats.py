from seats import free, groups, place


def test_free():
    assert free("..x.") == 3


def test_groups():
    assert groups("..x.xx...") == [(0, 2), (3, 1), (6, 3)]
    assert groups("xx") == []


def test_smallest_group_is_taken():
    assert place("....x..x", 2) == "....xxxx"


def test_leftmost_of_equals():
    assert place("..x..", 1) == "x.x.."


def test_no_room():
    assert place("..x..", 3) is None
