"""Finding keys in the text of a TOML file."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.config.toml_file import MAX_DEPTH, line_of, parse_toml, statements
from handrail.protocol.errors import ConfigProblem
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


@pytest.mark.promise("CONF-5")
@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 3_000) + " = 1",
        ".".join(["a"] * 400_000) + " = 1",
        " . ".join(['"\\""'] * 100_000) + " = 1",
        ".".join(["'a'"] * 100_000) + " = 1",
        f"[{'.'.join(['a'] * 400_000)}]",
        "a = " + "{a = " * 300 + "1" + "}" * 300,
        "a = " + "[" * 300 + "]" * 300,
        "".join(f"[{'.'.join(['a'] * depth)}]\n" for depth in range(60, 63)) + "b.b.b.b.b = 1\n",
    ],
    ids=["6 KB", "800 KB", "escaped", "quoted", "header", "tables", "lists", "in parts"],
)
def test_what_is_nested_too_deeply_is_refused_for_settings_and_agents_alike(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigProblem, match="nested too deeply"):
        parse_toml(tmp_path / "agent.toml", text.encode())
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "config.toml").write_text(text)
    with pytest.raises(ConfigProblem, match="nested too deeply"):
        load_settings(find_places(os.environ), tmp_path, environ={})


def test_many_levels_that_are_meant_are_read(tmp_path: Path) -> None:
    key = ".".join(["a"] * (MAX_DEPTH - 1))
    text = f'{key} = "1.{"2." * 40}"\nlong = "{"word " * 5_000}"\n# {"So it is. " * 500}\n'
    assert set(parse_toml(tmp_path / "a.toml", text.encode()).data) == {"a", "long"}
