import pytest

from board import Board

SPIRAL = "\n".join(["S....", "####.", "E...."])


@pytest.mark.parametrize(
    ("position", "around"),
    [((0, 0), [(0, 1), (1, 0)]), ((1, 1), [(0, 1), (1, 2), (2, 1), (1, 0)]), ((2, 2), [(1, 2), (2, 1)]), ((0, 1), [(0, 2), (1, 1), (0, 0)])],
)
def test_neighbours(position, around):
    assert Board("abc\ndef\nghi").neighbours(position) == around


def test_single_row_and_column():
    assert Board("ab").neighbours((0, 1)) == [(0, 0)]
    assert Board("a\nb\nc").neighbours((1, 0)) == [(0, 0), (2, 0)]


def test_distances():
    board = Board(SPIRAL)
    assert board.distance(board.find("S"), board.find("E")) == 10
    assert board.distance((0, 0), (0, 0)) == 0
    assert Board("..\n..").distance((0, 0), (1, 1)) == 2
    assert Board("....\n....\n....").distance((0, 0), (0, 3)) == 3
    assert Board("....\n.##.\n....").distance((2, 3), (0, 2)) == 3
    assert Board(".#.\n###\n...").distance((0, 0), (2, 2)) is None


def test_regions():
    assert Board("ab\nba").region((0, 0)) == {(0, 0)}
    assert len(Board("xxx\nxxx").region((1, 2))) == 6
    assert Board("xyx\nxxx").region((0, 2)) == {(0, 2), (1, 2), (1, 1), (1, 0), (0, 0)}


def test_rotations():
    board = Board("ab\ncd\nef")
    assert board.rotated().rows == ["eca", "fdb"]
    assert board.rotated().rotated().rows == ["fe", "dc", "ba"]
    assert board.rotated().rotated().rotated().rotated().rows == board.rows


def test_outside():
    for position in [(-1, 0), (0, 2), (1, 0)]:
        with pytest.raises(IndexError):
            Board("ab").at(position)
    with pytest.raises(LookupError):
        Board("ab").find("c")
