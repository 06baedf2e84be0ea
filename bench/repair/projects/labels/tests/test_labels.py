import pytest

from labels import initials, short, slug, unique


def test_short():
    assert short("hello", 5) == "hello"
    assert short("hello world", 8) == "hello..."
    with pytest.raises(ValueError):
        short("hello", 2)


def test_slug():
    assert slug("Hello, World!") == "hello-world"


def test_initials():
    assert initials("Ada Lovelace") == "AL"
    assert initials("Ludwig van Beethoven") == "LB"


def test_unique():
    assert unique("a", {"b"}) == "a"
    assert unique("a", {"a", "a (2)"}) == "a (3)"
