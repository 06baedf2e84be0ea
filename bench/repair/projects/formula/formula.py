"""Formulas such as `2 * (price + 1)`: tokens, a parser by precedence, and evaluation."""

import re

TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<mark>\*\*|[-+*/%(),]))")
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "**": 4}
RIGHT = {"**"}
UNARY = 3
FUNCTIONS = {"min": min, "max": max, "abs": abs, "round": round}


class FormulaError(Exception):
    """What is wrong with the formula."""


def tokens(text: str) -> list[str]:
    """Numbers, names and marks in order."""
    found = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise FormulaError(f"not understood: {text[at:].strip()}")
        found.append(match.group().strip())
        at = match.end()
    return found


class Formula:
    """A formula that can be evaluated with different values."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._values: dict[str, float] = {}

    def evaluate(self, **values: float) -> float:
        self._at, self._values = 0, values
        result = self._expression(1)
        if self._at < len(self._tokens):
            raise FormulaError(f"unexpected {self._tokens[self._at]}")
        return result

    def names(self) -> list[str]:
        """Variables in order of first use, without functions."""
        found: list[str] = []
        for token in self._tokens:
            if token[0].isalpha() or token[0] == "_":
                if token not in FUNCTIONS and token not in found:
                    found.append(token)
        return found

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise FormulaError("the formula ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _expression(self, least: int) -> float:
        left = self._operand()
        while (mark := self._peek()) in PRECEDENCE and PRECEDENCE[mark] >= least:
            self._next()
            right = self._expression(PRECEDENCE[mark] + (0 if mark in RIGHT else 1))
            left = self._apply(mark, left, right)
        return left

    def _operand(self) -> float:
        token = self._next()
        if token == "-":
            return -self._expression(UNARY)
        if token == "(":
            inner = self._expression(1)
            self._expect(")")
            return inner
        if token[0].isdigit():
            return float(token)
        if token in FUNCTIONS:
            return float(FUNCTIONS[token](*self._arguments()))
        if token in self._values:
            return self._values[token]
        raise FormulaError(f"unknown: {token}")

    def _arguments(self) -> list[float]:
        self._expect("(")
        given = [self._expression(1)]
        while self._peek() == ",":
            self._next()
            given.append(self._expression(1))
        self._expect(")")
        return given

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise FormulaError(f"{mark} is missing")

    def _apply(self, mark: str, left: float, right: float) -> float:
        if mark in {"/", "%"} and right == 0:
            raise FormulaError("division by zero")
        if mark == "+":
            return left + right
        if mark == "-":
            return left - right
        if mark == "*":
            return left * right
        if mark == "/":
            return left / right
        if mark == "%":
            return left % right
        return left**right
