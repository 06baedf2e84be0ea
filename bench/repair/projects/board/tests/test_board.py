import pytest

from board import Board

MAZE = """
S.#.
..#.
....
#.#E
"""


def test_size():
    board = Board("abc\ndef")
    assert (board.height, board.width) == (2, 3)
    with pytest.raises(ValueError):
        Board("ab\nc")


def test_find():
    assert Board(MAZE).find("E") == (3, 3)


def test_neighbours_in_a_corner():
    assert Board("abc\ndef").neighbours((0, 2)) == [(1, 2), (0, 1)]
    assert Board("abc\ndef").neighbours((1, 0)) == [(0, 0), (1, 1)]


def test_region():
    assert Board("aab\nbab\naaa").region((0, 0)) == {(0, 0), (0, 1), (1, 1), (2, 0), (2, 1), (2, 2)}


def test_distance():
    board = Board(MAZE)
    assert board.distance(board.find("S"), board.find("E")) == 6
    assert Board("...\n...\n...").distance((0, 0), (0, 2)) == 2


def test_no_way():
    assert Board("a#b").distance((0, 0), (0, 2)) is None


def test_rotated():
    assert Board("abc\ndef").rotated().rows == ["da", "eb", "fc"]


def test_count():
    assert Board(MAZE).count("#") == 4
