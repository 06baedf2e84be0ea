"""The table of places."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.policy.call_facts import Allow, Ask, Deny, Facts, PathFacts
from handrail.policy.decide import decide
from handrail.policy.paths import (
    AUTORUN_FILES,
    TABLE,
    bad_new_name_reason,
    bad_path_reason,
    matches_autorun,
    mixes_alphabets,
)

PAGE = Path(__file__).parents[2] / "docs" / "paths.md"
PLACES = {
    "outside": PathFacts("/x", inside=False),
    "git": PathFacts(".git/x", in_git=True),
    "state": PathFacts(".handrail/x", in_state=True),
    "program": PathFacts("src/handrail/x.py", in_program=True),
    "secret": PathFacts(".env", secret=True),
    "unfit name": PathFacts("a\u200b"),
    "no file": PathFacts("src", found="folder"),
    "unfit new name": PathFacts("a?", found="nothing", missing=("a?",)),
    "double": PathFacts("a", found="nothing", missing=("a",), twin="A", twin_by="encoding"),
    "other case": PathFacts("a", found="nothing", missing=("a",), twin="A", twin_by="case"),
    "two alphabets": PathFacts("\u0430b", found="nothing", missing=("\u0430b",)),
    "running file": PathFacts(".mcp.json"),
    "hard link": PathFacts("a", links=2),
}


def verdict(path: PathFacts, *, change: bool) -> str:
    decision = decide(Facts("tool", "write" if change else "look", "auto", path=path))
    return {Allow: "allow", Ask: "ask", Deny: "deny"}[type(decision)]


@pytest.mark.promise("POL-23")
def test_the_page_has_the_table_that_is_in_force() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    shown = [(name, what, look, change) for name, what, look, change, *_ in rows[2:]]
    assert shown == [(row.name, row.what, row.look, row.change) for row in TABLE]


@pytest.mark.promise("POL-23")
def test_each_row_is_what_is_decided() -> None:
    assert list(PLACES) == [row.name for row in TABLE]
    for row in TABLE:
        place = PLACES[row.name]
        assert (verdict(place, change=False), verdict(place, change=True)) == (row.look, row.change), row.name


def test_an_ask_of_the_table_tells_its_reason_also_where_the_mode_asks() -> None:
    decision = decide(Facts("edit", "write", "ask", path=PLACES["running file"]))
    assert isinstance(decision, Ask)
    assert "can make other programs run" in decision.reason


def test_where_nobody_can_be_asked_no_mode_is_named_that_would_not_help() -> None:
    decision = decide(Facts("edit", "write", "auto", path=PLACES["running file"], answerable=False))
    assert isinstance(decision, Deny)
    assert "--mode" not in decision.error.message


def test_a_scope_narrows_and_never_widens() -> None:
    owned = Facts("edit", "write", "auto", path=PathFacts("src/a"), scope=("src/**",))
    assert isinstance(decide(owned), Allow)
    for path in (PathFacts("a"), PathFacts(".git/x", in_git=True)):
        assert isinstance(decide(replace(owned, path=path, scope=("src/**", ".git/**"))), Deny)
    assert isinstance(decide(replace(owned, action="look", path=PathFacts("a"))), Allow)


@pytest.mark.parametrize("pattern", AUTORUN_FILES)
def test_every_pattern_of_running_files_finds_something_at_any_depth_it_says(pattern: str) -> None:
    example = pattern.replace("**/", "a/b/").replace("/**", "/c").replace("*", "d")
    assert matches_autorun(example), example
    if pattern.startswith("**/"):
        assert matches_autorun(pattern.removeprefix("**/").replace("/**", "/c").replace("*", "d").upper())


@pytest.mark.parametrize("name", ["src/a b.py", "größe", "数据/データ.py", "a.b.c", "-x/y", "❤️.md", "٣.txt"])
def test_names_that_people_use_are_fit(name: str) -> None:
    assert bad_path_reason(name) == ""


@pytest.mark.parametrize("name", ["src", "größe.py", "$id.tsx", "[id].tsx", "x~", "100%.md", "communication"])
def test_new_names_that_people_use_are_fit(name: str) -> None:
    assert bad_new_name_reason([name]) == ""


def test_alphabets_are_mixed_only_within_a_word() -> None:
    assert mixes_alphabets(["p\u0430ypal.py"])
    assert not mixes_alphabets(["\u0434\u0430\u043d\u043d\u044b\u0435_v2.py"])
