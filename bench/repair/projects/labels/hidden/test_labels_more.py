import pytest

from labels import initials, short, slug, unique


@pytest.mark.parametrize(("text", "width", "cut"), [("", 3, ""), ("abc", 3, "abc"), ("abcd", 3, "..."), ("abcdef", 5, "ab..."), ("abcdef", 6, "abcdef")])
def test_short(text, width, cut):
    assert short(text, width) == cut


@pytest.mark.parametrize(("text", "made"), [("", ""), ("--a--b--", "a-b"), ("3 Little Pigs", "3-little-pigs"), ("a_b", "a-b"), ("!?", ""), ("A  &  B", "a-b")])
def test_slug(text, made):
    assert slug(text) == made


@pytest.mark.parametrize(("name", "letters"), [("", ""), ("plato", "P"), ("van der meer", "VDM"), ("Vincent van Gogh", "VG"), ("  Grace  Brewster Hopper ", "GBH"), ("iPhone Team", "IT")])
def test_initials(name, letters):
    assert initials(name) == letters


def test_unique():
    assert unique("x", set()) == "x"
    assert unique("x", {"x"}) == "x (2)"
    assert unique("x", {"x", "x (3)"}) == "x (2)"
    assert unique("x (2)", {"x (2)"}) == "x (2) (2)"
    with pytest.raises(ValueError):
        short("", 0)
