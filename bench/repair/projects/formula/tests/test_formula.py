import pytest

from formula import Formula, FormulaError, tokens


def value(text, **values):
    return Formula(text).evaluate(**values)


def test_tokens():
    assert tokens("2*(x_1 + 10.5)") == ["2", "*", "(", "x_1", "+", "10.5", ")"]


def test_precedence():
    assert value("2 + 3 * 4") == 14
    assert value("(2 + 3) * 4") == 20


def test_left_to_right():
    assert value("10 - 4 - 3") == 3
    assert value("16 / 4 / 2") == 2


def test_powers_go_from_the_right():
    assert value("2 ** 3 ** 2") == 512
    assert value("-2 ** 2") == -4


def test_values_and_functions():
    assert value("max(price, 3) * count", price=2, count=4) == 12


def test_division_by_zero():
    with pytest.raises(FormulaError):
        value("1 / (2 - 2)")
    with pytest.raises(FormulaError):
        value("5 % 0")


def test_names():
    assert Formula("b * a + min(b, 2)").names() == ["b", "a"]


def test_rest_is_an_error():
    with pytest.raises(FormulaError):
        value("1 2")
