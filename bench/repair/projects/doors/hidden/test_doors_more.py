import pytest

from doors import matches, may_open, parse


@pytest.mark.parametrize("rule", ["", "+", "+a", "a:b", "+:b", "+a:", "=a:b"])
def test_no_rules(rule):
    with pytest.raises(ValueError):
        parse(rule)


def test_parse():
    assert parse("+*:*") == (True, "*", "*")
    assert parse("-a:b:c") == (False, "a", "b:c")


@pytest.mark.parametrize(("pattern", "door", "meant"), [("*", "x", True), ("a*", "abc", True), ("a*", "ba", False), ("ab", "ab", True), ("ab", "abc", False), ("a/*", "a", False)])
def test_matches(pattern, door, meant):
    assert matches(pattern, door) is meant


@pytest.mark.parametrize(
    ("rules", "groups", "door", "opened"),
    [
        ([], {"a"}, "x", False),
        (["+a:x", "-*:x"], {"a"}, "x", False),
        (["-*:x", "+a:x"], {"a"}, "x", True),
        (["-*:x", "+a:x"], {"b"}, "x", False),
        (["+b:*", "-b:y*", "+b:yes"], {"b", "c"}, "yes", True),
        (["+b:*", "-b:y*", "+b:yes"], {"b"}, "yet", False),
    ],
)
def test_may_open(rules, groups, door, opened):
    assert may_open(rules, groups, door) is opened
