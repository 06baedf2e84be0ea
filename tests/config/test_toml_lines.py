"""Finding keys in the text of a TOML file."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from handrail.config.toml_lines import line_of, statements
from tests.config.documents import documents


def parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        reject()


def looked_up(data: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        data = data[-1] if isinstance(data, list) else data
        data = data[part]
    return data


@given(documents)
def test_every_value_is_found_where_it_is_written(text: str) -> None:
    data = parsed(text)
    lists = {statement.path for statement in statements(text) if statement.kind == "list_header"}
    for statement in statements(text):
        inside_list = any(statement.path[: len(path)] == path for path in lists)
        if statement.kind == "pair" and not inside_list:
            value = tomllib.loads("value = " + text[statement.value : statement.end])["value"]
            assert value == looked_up(data, statement.path)


@given(documents, st.integers(min_value=1, max_value=5))
def test_lines_above_move_a_key_down_by_as_many(text: str, count: int) -> None:
    parsed(text)
    paths = {statement.path for statement in statements(text)}
    moved = "# above\n" * count + text
    for path in paths:
        assert line_of(moved, path) == line_of(text, path) + count


TEXT = """# mine
mode = "ask"

[limits]
usd = 3
[models]
fallback = { main = [] }

# [limits]

[connections.work]
base_url = "x"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("mode",), 2),
        (("limits",), 4),
        (("limits", "usd"), 5),
        (("limits", "nothing"), 4),
        (("models", "fallback", "main"), 7),
        (("connections", "work", "price", "input"), 11),
        (("connections",), 11),
        (("absent",), 1),
    ],
)
def test_a_key_has_the_line_of_what_holds_it(path: tuple[str, ...], line: int) -> None:
    assert line_of(TEXT, path) == line
