import pytest

from releases import bump, newest, parse


@pytest.mark.parametrize("text", ["", "1", "1.2.3.4", "a.b.c", "1.2.3-", "1..3", "-beta", "1.2.x"])
def test_no_releases(text):
    with pytest.raises(ValueError):
        parse(text)


def test_parse():
    assert parse("0.0.12-rc-2") == (0, 0, 12, "rc-2")


@pytest.mark.parametrize(
    ("releases", "found"),
    [(["2.0.0", "10.0.0"], "10.0.0"), (["1.0.0-alpha", "1.0.0-beta"], "1.0.0-beta"), (["1.0.1-a", "1.0.0"], "1.0.1-a"), (["3.0.0-z", "3.0.0", "3.0.0-a"], "3.0.0"), (["0.1.9", "0.1.11", "0.1.10"], "0.1.11")],
)
def test_newest(releases, found):
    assert newest(releases) == found


@pytest.mark.parametrize(("text", "part", "after"), [("1.2.3", "minor", "1.3.0"), ("9.9.9", "major", "10.0.0"), ("0.0.9", "patch", "0.0.10"), ("1.2.3-x", "minor", "1.3.0")])
def test_bump(text, part, after):
    assert bump(text, part) == after
