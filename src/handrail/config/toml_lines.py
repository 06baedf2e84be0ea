"""Where things stand in the text of a TOML file; `tomllib` gives only what they mean."""

import functools
import re
import tomllib
from collections.abc import Iterator
from typing import Literal, NamedTuple

KeyPath = tuple[str, ...]

STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


class Statement(NamedTuple):
    """A header or a `key = value` in the text. Offsets count characters; `end` is before any comment."""

    kind: Literal["header", "list_header", "pair"]
    path: KeyPath
    """From the top of the document."""
    section: KeyPath
    """The header it stands under."""
    start: int
    value: int
    """Where the value begins; `end` for a header."""
    end: int


@functools.lru_cache(maxsize=8)
def statements(text: str) -> tuple[Statement, ...]:
    """The statements of a document that `tomllib` has accepted, in order."""
    return tuple(_scan(text))


def line_of(text: str, path: KeyPath) -> int:
    """The line, from 1, where the key or section is written; that of its container where it is inside one.

    Sections of a list may be counted, from 0: `("hooks", "1", "run")`.
    """
    best, best_rank = 0, (-1, False)
    for statement, written in _addresses(text):
        shared = _shared(written, path)
        inside = shared == len(written)
        if shared == len(path) or (inside and shared > 0):
            rank = (shared, inside)
            if rank > best_rank:
                best, best_rank = statement.start, rank
    return text.count("\n", 0, best) + 1


def _scan(text: str) -> Iterator[Statement]:
    section: KeyPath = ()
    at = 0
    while (at := _next_statement(text, at)) < len(text):
        if text[at] == "[":
            double = text.startswith("[[", at)
            first = at + (2 if double else 1)
            last = _find(text, first, "]")
            section = _key(text[first:last])
            end = last + (2 if double else 1)
            yield Statement("list_header" if double else "header", section, section, at, end, end)
        else:
            equals = _find(text, at, "=")
            value = equals + 1
            while text[value] in " \t":
                value += 1
            end = _end_of_value(text, value)
            yield Statement("pair", section + _key(text[at:equals]), section, at, value, end)
        at = end


def _addresses(text: str) -> Iterator[tuple[Statement, KeyPath]]:
    """Each statement with its path, and once more, with the numbers of the lists that its section is in."""
    counts: dict[KeyPath, int] = {}
    for statement in statements(text):
        section, path = statement.section, statement.path
        if statement.kind == "list_header":
            number = counts.get(section, -1) + 1
            counts = {list_: at for list_, at in counts.items() if list_[: len(section)] != section}
            counts[section] = number
        yield statement, path
        numbered = _numbered(path, section, counts)
        if numbered != path:
            yield statement, numbered


def _numbered(path: KeyPath, section: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    """`("stages", "gates", "check")` as `("stages", "1", "gates", "0", "check")`."""
    parts: list[str] = []
    for length, name in enumerate(path, 1):
        parts.append(name)
        if length <= len(section) and section[:length] in counts:
            parts.append(str(counts[section[:length]]))
    return tuple(parts)


def _shared(first: KeyPath, second: KeyPath) -> int:
    pairs = zip(first, second, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _next_statement(text: str, at: int) -> int:
    while at < len(text):
        if text[at] == "#":
            at = _end_of_line(text, at)
        elif text[at] in " \t\r\n":
            at += 1
        else:
            break
    return at


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _find(text: str, at: int, wanted: str) -> int:
    """The next `wanted` outside quotes."""
    while text[at] != wanted:
        quoted = STRING.match(text, at)
        at = quoted.end() if quoted else at + 1
    return at


def _end_of_value(text: str, start: int) -> int:
    at, depth = start, 0
    while at < len(text):
        if quoted := STRING.match(text, at):
            at = quoted.end()
            continue
        if depth == 0 and text[at] in "#\n":
            break
        if text[at] == "#":
            at = _end_of_line(text, at)
            continue
        depth += (text[at] in "[{") - (text[at] in "]}")
        at += 1
    return start + len(text[start:at].rstrip(" \t\r"))


def _key(text: str) -> KeyPath:
    """The parts of a key as written, quotes and dots understood."""
    inner: object = tomllib.loads(f"{text.strip()} = 0")
    parts = []
    while isinstance(inner, dict):
        [(name, inner)] = inner.items()
        parts.append(name)
    return tuple(parts)
