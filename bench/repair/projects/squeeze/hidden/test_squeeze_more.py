import pytest

from squeeze import saved, squeeze, unsqueeze


@pytest.mark.parametrize(
    ("text", "short"),
    [("a", "a"), ("aa", "aa"), ("aaa", "3a"), ("abab", "abab"), ("   .", "3 ."), ("x" * 100 + "yy", "100xyy"), ("aabbbaa", "aa3baa"), ("--", "--")],
)
def test_both_ways(text, short):
    assert squeeze(text) == short
    assert unsqueeze(short) == text
    assert saved(text) == len(text) - len(short)


@pytest.mark.parametrize("text", ["9", "aaa7", "1a1"])
def test_digits(text):
    with pytest.raises(ValueError):
        squeeze(text)


@pytest.mark.parametrize("text", ["3", "a12", "2a2"])
def test_numbers_at_the_end(text):
    with pytest.raises(ValueError):
        unsqueeze(text)
