"""Globs, compared with those of the standard library."""

import re
from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.globs import covers, name_regex

LETTERS = st.text("ab.", min_size=1, max_size=5).filter(lambda name: set(name) != {"."})
PATTERNS = st.text("ab.*?", min_size=1, max_size=6).filter(lambda name: set(name) != {"."})


@given(PATTERNS, LETTERS)
def test_within_one_name_a_glob_means_what_globs_mean(pattern: str, name: str) -> None:
    if pattern.replace("*", "") or pattern == "*":
        assert covers(pattern, name) == fnmatchcase(name, pattern)
    assert bool(re.fullmatch(name_regex(pattern), name)) == fnmatchcase(name, pattern)


@given(st.lists(LETTERS, min_size=1, max_size=4), st.lists(LETTERS, max_size=3))
def test_two_stars_span_any_number_of_folders(path: list[str], before: list[str]) -> None:
    assert covers("/".join([*before, "**", path[-1]]), "/".join([*before, *path]))


def test_no_pattern_takes_long() -> None:
    assert not covers("*a" * 60 + "b", "a" * 255)
    assert not covers("**/a/" * 30 + "b", "a/" * 200 + "c")
    assert not covers("{a,b}" * 40, "a" * 40)
