import pytest

from seats import free, groups, place


@pytest.mark.parametrize(("row", "found"), [("", []), (".", [(0, 1)]), ("x.", [(1, 1)]), ("...", [(0, 3)]), (".x.x.", [(0, 1), (2, 1), (4, 1)])])
def test_groups(row, found):
    assert groups(row) == found
    assert free(row) == sum(length for _, length in found)


@pytest.mark.parametrize(
    ("row", "people", "after"),
    [("...", 3, "xxx"), (".....x...x....", 3, ".....xxxxx...."), ("x..x..", 2, "xxxx.."), ("......", 2, "xx...."), ("xxx", 1, None), ("", 1, None), ("...x....x..", 4, "...xxxxxx.."), (".x...", 2, ".xxx.")],
)
def test_place(row, people, after):
    assert place(row, people) == after
