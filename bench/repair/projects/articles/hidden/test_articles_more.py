import pytest

from articles import letter, next_number, valid


@pytest.mark.parametrize(("digits", "found"), [("00000", "A"), ("99999", "F"), ("10000", "B"), ("00001", "F"), ("54321", "J"), ("90210", "T")])
def test_letters(digits, found):
    assert letter(digits) == found
    assert valid(digits + found)
    assert valid(f"{digits[:2]}-{digits[2:]} {found.lower()}")


@pytest.mark.parametrize("digits", ["", "1234", "123456", "12a45", "1234-"])
def test_no_digits(digits):
    with pytest.raises(ValueError):
        letter(digits)


@pytest.mark.parametrize("number", ["", "D", "12345", "123456D", "D12345", "1234xD", "12345DD"])
def test_invalid(number):
    assert not valid(number)


def test_next():
    assert next_number("99999F") == "00000A"
    assert next_number("0-0000 a") == "00001F"
    assert next_number("00009" + letter("00009")) == "00010" + letter("00010")
    with pytest.raises(ValueError):
        next_number("00000B")
