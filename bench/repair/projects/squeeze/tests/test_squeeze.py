import pytest

from squeeze import saved, squeeze, unsqueeze


def test_squeeze():
    assert squeeze("aaaabbc") == "4abbc"
    assert squeeze("") == ""


def test_unsqueeze():
    assert unsqueeze("4abbc") == "aaaabbc"
    assert unsqueeze("12x") == "x" * 12


def test_errors():
    with pytest.raises(ValueError):
        squeeze("a1")
    with pytest.raises(ValueError):
        unsqueeze("a3")


def test_saved():
    assert saved("aaaabbc") == 2
