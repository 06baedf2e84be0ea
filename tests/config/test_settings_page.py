"""docs/settings.md says what the code does."""

import re
import tomllib
from pathlib import Path

from handrail.config.layers import load_settings, shown_settings
from handrail.config.places import find_places
from handrail.config.toml_edit import toml_value
from handrail.config.toml_file import statements
from handrail.config.validation import validate

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")


def test_the_page_lists_every_key_with_its_default(tmp_path: Path) -> None:
    loaded = load_settings(find_places({"HANDRAIL_HOME": str(tmp_path)}), None, environ={})
    in_code = {row.key: toml_value(row.value) for row in shown_settings(loaded)}
    on_page = dict(re.findall(r"^\| `([a-z_.]+)` \| `([^`]+)` \|", PAGE, re.MULTILINE))
    assert on_page == in_code


def test_the_example_on_the_page_is_valid() -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    assert len(statements(example[1])) > 5
    validate(tomllib.loads(example[1]), ".".join)
