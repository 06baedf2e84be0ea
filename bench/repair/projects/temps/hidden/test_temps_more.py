import pytest

from temps import averages, read, warmest


def test_read():
    assert read("  a 1 2  \n#b 1 2\nc 23 -0.5") == [("a", 1, 2.0), ("c", 23, -0.5)]
    assert read("") == []


@pytest.mark.parametrize("line", ["a b c d", "a", "a x 1", "a 1 x", "a 1 2 3"])
def test_wrong_lines(line):
    with pytest.raises(ValueError):
        read(f"a 1 1\n{line}")


@pytest.mark.parametrize(("text", "found"), [("a 1 -5\nb 2 -4", ("b", 2)), ("a 1 5\nb 2 5", ("a", 1)), ("# no\n\n", None), ("a 1 9\na 2 10", ("a", 2))])
def test_warmest(text, found):
    assert warmest(text) == found


def test_averages():
    assert averages("") == {}
    made = averages("z 1 1\na 1 2\nz 2 2\nz 3 2\na 2 2.2")
    assert made == {"z": 1.7, "a": 2.1}
    assert list(made) == ["z", "a"]
