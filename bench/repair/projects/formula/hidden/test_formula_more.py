import pytest

from formula import Formula, FormulaError, tokens


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1 - 2 + 3", 2), ("100 / 10 * 2", 20), ("7 % 4 * 2", 6), ("20 - 2 * 3 - 4", 10), ("2 ** 2 ** 3", 256),
        ("-3 + 5", 2), ("2 * -3", -6), ("2 ** -1", 0.5), ("-(1 + 2) * 2", -6), ("abs(1 - 5)", 4), ("3 ** 2 * 2", 18),
        ("min(4, 2 + 1, 9)", 3), ("round(2.6)", 3), ("8 / 2 / 2 / 2", 1), ("9 - 3 - 3 - 3", 0), ("-4 * 2", -8),
    ],
)  # fmt: skip
def test_values(text, result):
    assert Formula(text).evaluate() == result


@pytest.mark.parametrize("text", ["", "1 +", "(1", "1)", "a", "min 1", "1 / 0", "3 % (1 - 1)", "min(1", "* 2"])
def test_errors(text):
    with pytest.raises(FormulaError):
        Formula(text).evaluate()


def test_unknown_marks():
    with pytest.raises(FormulaError):
        tokens("1 $ 2")


def test_again_with_other_values():
    formula = Formula("a * a - b")
    assert [formula.evaluate(a=2, b=1), formula.evaluate(a=3, b=10)] == [3, -1]


@pytest.mark.parametrize(("text", "names"), [("1 + 2", []), ("_x + y1 - _x", ["_x", "y1"]), ("max(c, b, a) + c", ["c", "b", "a"])])
def test_names(text, names):
    assert Formula(text).names() == names


def test_tokens_more():
    assert tokens("  a**-1 ") == ["a", "**", "-", "1"]
    assert tokens("") == []
