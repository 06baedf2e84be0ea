import pytest

from releases import bump, newest, parse


def test_parse():
    assert parse("2.10.1") == (2, 10, 1, "")
    assert parse("2.10.1-beta") == (2, 10, 1, "beta")
    with pytest.raises(ValueError):
        parse("2.10")


def test_newest():
    assert newest(["1.9.0", "1.10.0", "1.2.30"]) == "1.10.0"
    assert newest(["1.0.0", "1.0.0-beta"]) == "1.0.0"
    assert newest([]) is None


def test_bump():
    assert bump("1.2.3", "major") == "2.0.0"
    assert bump("1.2.3-rc", "patch") == "1.2.4"
    with pytest.raises(ValueError):
        bump("1.2.3", "other")
