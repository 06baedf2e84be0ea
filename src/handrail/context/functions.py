"""The functions of a source text, found by their shape: enough for a small model to rewrite one."""

import re
from typing import NamedTuple

HEADER = re.compile(
    r"(?P<indent>[ \t]*)(?:func \([^()\n]*\) )?[^\n()=]*?(?<![\w$])(?P<name>[A-Za-z_$][\w$]*)"
    r"(?:\s*=\s*(?:async\s*)?)?\s*\([^\n]*(?:[{:]|=>)[ \t]*\n?\Z"
)
NO_NAMES = re.compile(r"if|for|while|switch|with|catch|match|case|elif|return|except|describe|it|test")
QUOTES = ('"""', "'''")


class Function(NamedTuple):
    """A function or method: its name, the lines that introduce it, and the rest of it."""

    name: str
    head: str
    """The header with its docstring: what a caller relies on."""
    body: str

    @property
    def text(self) -> str:
        return self.head + self.body


def functions(source: str) -> list[Function]:
    """Those whose header is one line and whose body is further indented, in their order; no text twice."""
    lines = source.splitlines(keepends=True)
    found: dict[str, Function] = {}
    for at, line in enumerate(lines):
        header = HEADER.match(line)
        if header is None or NO_NAMES.fullmatch(header["name"]):
            continue
        end = _end(lines, at, len(header["indent"]))
        head = _head_end(lines, at, end)
        if head < end:
            function = Function(header["name"], "".join(lines[at:head]), "".join(lines[head:end]))
            found.setdefault(function.text, function)
    return [function for text, function in found.items() if source.count(text) == 1]


def _end(lines: list[str], at: int, indent: int) -> int:
    """Where the lines end that are further indented, a closing brace included."""
    last = at
    for number in range(at + 1, len(lines)):
        text = lines[number].strip()
        if text and _indent(lines[number]) <= indent:
            closes = lines[at].rstrip().endswith("{") and text.startswith("}")
            return number + 1 if closes else last + 1
        last = number if text else last
    return last + 1


def _head_end(lines: list[str], at: int, end: int) -> int:
    """Where the header with its docstring ends."""
    opened = lines[at + 1].strip() if at + 1 < end else ""
    if not opened.startswith(QUOTES):
        return at + 1
    mark = opened[:3]
    if mark in opened[3:]:
        return at + 2
    return next((number + 1 for number in range(at + 2, end) if mark in lines[number]), at + 1)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
