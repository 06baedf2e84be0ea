import pytest

from articles import letter, next_number, valid


def test_letter():
    assert letter("12345") == "D"
    with pytest.raises(ValueError):
        letter("123")


def test_valid():
    assert valid("12345D")
    assert valid("12-345 d")
    assert not valid("12345E")
    assert not valid("1234D")


def test_next():
    assert next_number("12345D") == "12346I"
    with pytest.raises(ValueError):
        next_number("12345E")
