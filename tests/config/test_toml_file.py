"""TOML files of others: whatever is in them, they are read, or refused with a word, and soon."""

import os
from pathlib import Path

import pytest

from handrail.config.layers import load_settings
from handrail.config.places import find_places
from handrail.config.toml_file import DEEPEST, parse_toml
from handrail.protocol.errors import ConfigProblem


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
    key = ".".join(["a"] * (DEEPEST - 1))
    text = f'{key} = "1.{"2." * 40}"\nlong = "{"word " * 5_000}"\n# {"So it is. " * 500}\n'
    assert set(parse_toml(tmp_path / "a.toml", text.encode()).data) == {"a", "long"}
