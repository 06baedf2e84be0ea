"""Setting one key in the user's file."""

import copy
import os
import stat
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from handrail.config.places import find_places
from handrail.config.toml_edit import (
    add_in_file,
    save_setting,
    set_in_file,
    set_in_text,
    toml_key,
    toml_value,
)
from handrail.config.toml_file import statements
from handrail.protocol.errors import ConfigProblem
from tests.config.documents import NAMES, documents

values = st.recursive(
    st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple)


def with_key(data: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(data)
    inner = changed
    for part in path[:-1]:
        inner = inner.setdefault(part, {})
    inner[path[-1]] = value
    return changed


def shared_start(first: str, second: str) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))


@given(values)
def test_a_value_is_read_back_as_it_was_written(value: Any) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}") == {"value": value}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_key_is_read_back_as_it_was_written(name: str) -> None:
    assert tomllib.loads(f"{toml_key((name,))} = 1") == {name: 1}


@pytest.mark.promise("CONF-3")
@given(documents, paths, values)
def test_setting_a_key_changes_nothing_else(text: str, path: tuple[str, ...], value: Any) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        reject()
    try:
        changed = set_in_text(text, path, value)
    except ConfigProblem:
        return  # refused, with the file as it was
    assert tomllib.loads(changed) == with_key(data, path, value)
    start = shared_start(text, changed)
    end = len(text) - shared_start(text[start:][::-1], changed[start:][::-1])
    own = [s for s in statements(text) if s.kind == "pair" and s.path == path]
    assert start == end or any(s.value <= start and end <= s.end for s in own), text[start:end]


ORDINARY = """# How I like it.
mode = "ask"   # careful

# What it may cost.
[limits]
usd = 3.0 # a day's coffee
steps = 40

[models]
main = 'anthropic/claude'
fallback.main = [
    "a/b", # cheap
    "c/d",
]

[connections.work]
base_url = "https://example.com/v1"
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("mode",), "plan", 'mode = "ask"   # careful', 'mode = "plan"   # careful'),
        (("limits", "usd"), 1.5, "usd = 3.0 # a", "usd = 1.5 # a"),
        (("limits", "turn_tokens"), 9, "steps = 40\n", "steps = 40\nturn_tokens = 9\n"),
        (("retries", "count"), 2, '/v1"\n', '/v1"\n\n[retries]\ncount = 2\n'),
        (("models", "main"), "x/y", "'anthropic/claude'", '"x/y"'),
        (("models", "fallback", "main"), ["e/f"], '[\n    "a/b", # cheap\n    "c/d",\n]', '["e/f"]'),
        (("models", "fallback", "other"), ["e/f"], '"c/d",\n]\n', '"c/d",\n]\nfallback.other = ["e/f"]\n'),
        (("auto_route",), False, "careful\n", "careful\nauto_route = false\n"),
    ],
)
def test_an_ordinary_file_is_changed_in_one_place(
    path: tuple[str, ...], value: Any, old: str, new: str
) -> None:
    assert ORDINARY.count(old) == 1
    assert set_in_text(ORDINARY, path, value) == ORDINARY.replace(old, new)


def test_a_first_top_key_goes_above_the_sections_and_their_comment() -> None:
    text = "# File.\n\n# Costs.\n[limits]\nusd = 1\n"
    assert set_in_text(text, ("mode",), "plan") == '# File.\n\nmode = "plan"\n\n# Costs.\n[limits]\nusd = 1\n'


def test_windows_line_ends_stay() -> None:
    assert (
        set_in_text("[limits]\r\nusd = 1\r\n", ("limits", "steps"), 2)
        == "[limits]\r\nusd = 1\r\nsteps = 2\r\n"
    )


def test_a_key_in_an_inline_table_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigProblem, match=r"mine\.toml:2: .*by hand"):
        set_in_text("# x\nlimits = { usd = 1 }\n", ("limits", "usd"), 2, "mine.toml")
    with pytest.raises(ConfigProblem, match=r":1: .*not a section"):
        set_in_text("limits = 1\n", ("limits", "usd"), 2)


def test_a_section_is_never_replaced_by_a_value() -> None:
    with pytest.raises(ConfigProblem, match="by hand"):
        set_in_text("[limits]\nusd = 1\n", ("limits",), 2)


def test_the_file_is_made_readable_by_the_user_alone(home: Path) -> None:
    places = find_places(os.environ)
    assert save_setting(places, "limits.usd", "0.5") == 0.5
    assert stat.S_IMODE(places.settings.stat().st_mode) == 0o600
    assert places.settings.read_text() == "[limits]\nusd = 0.5\n"
    assert [path.name for path in places.settings.parent.iterdir()] == ["config.toml"]


def test_a_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "handrail.toml"
    real.parent.mkdir()
    real.write_text("# mine\n")
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    set_in_file(link, ("mode",), "plan")
    assert link.is_symlink()
    assert real.read_text() == '# mine\nmode = "plan"\n'


def test_a_broken_file_is_left_alone(home: Path) -> None:
    places = find_places(os.environ)
    places.settings.parent.mkdir(parents=True)
    places.settings.write_text("mode = \n")
    with pytest.raises(ConfigProblem, match=r"config\.toml:1: not valid TOML"):
        save_setting(places, "mode", "plan")
    assert places.settings.read_text() == "mode = \n"


def test_a_wrong_value_or_key_is_refused_before_anything_is_written(home: Path) -> None:
    places = find_places(os.environ)
    with pytest.raises(ConfigProblem, match=r"limits\.usd should be"):
        save_setting(places, "limits.usd", "much")
    with pytest.raises(ConfigProblem, match=r"did you mean 'limits\.usd'\?$"):
        save_setting(places, "limit.usd", "1")
    assert not places.settings.exists()


def test_text_that_is_no_text_is_refused_and_leaves_no_trace(home: Path) -> None:
    places = find_places(os.environ)
    with pytest.raises(ConfigProblem, match="not valid text"):
        save_setting(places, "models.main", "\udcff")
    assert list(places.settings.parent.iterdir()) == []


def test_two_who_write_at_once_both_count(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    names = [f"key{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: set_in_file(file, (name,), 1), names))
    assert tomllib.loads(file.read_text()) == dict.fromkeys(names, 1)


@pytest.mark.promise("POL-14")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '[commands]\nallow = ["make"]\n'),
        ('[commands]\nallow = ["ls"]  # mine\n', '[commands]\nallow = ["ls", "make"]  # mine\n'),
        ('mode = "ask"\n', 'mode = "ask"\n\n[commands]\nallow = ["make"]\n'),
        ('commands.allow = ["make"]\n', 'commands.allow = ["make"]\n'),
    ],
)
def test_a_value_is_added_to_a_list_once(tmp_path: Path, before: str | None, after: str) -> None:
    file = tmp_path / "new" / "config.toml"
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)
    for _ in range(2):
        add_in_file(file, ("commands", "allow"), "make")
    assert file.read_text() == after
