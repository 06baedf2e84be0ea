"""Do two scopes own a common path? Compared with trying all short paths."""

from itertools import combinations, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handrail.policy.intent_conflicts import UNKNOWN_PATH, overlap
from handrail.policy.intent_rules import in_scope

NAMES = ["a", "b", "ab", "ba", "aa", "bab"]
PATHS = ["/".join(names) for depth in (1, 2, 3) for names in product(NAMES, repeat=depth)]
SEGMENTS = st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "?", "a?", "[ab]", "[!a]", "**", "{a,b}", "[a"])
PATTERNS = st.builds(
    lambda no, segments, end: no + "/".join(segments) + end,
    st.sampled_from(["", "", "", "!"]),
    st.lists(SEGMENTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
SCOPES = st.lists(PATTERNS, min_size=1, max_size=3)


@settings(max_examples=400)
@given(SCOPES, SCOPES)
@example(["**"], ["a/**", "!a/**"])
@example(["src/**", "!src/a"], ["src/a"])
def test_two_scopes_meet_exactly_where_some_path_is_in_both(one: list[str], other: list[str]) -> None:
    found = overlap(one, other)
    assert found != UNKNOWN_PATH
    if found:
        assert in_scope(found, one)
        assert in_scope(found, other)
    else:
        common = [path for path in PATHS if in_scope(path, one) and in_scope(path, other)]
        assert not common


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (["src/api/**"], ["src/web/**"], False),
        (["src/**"], ["src/web/x.py"], True),
        (["src/**", "!src/web/**"], ["src/web/**"], False),
        (["src/*.py"], ["src/a*"], True),
        (["src/*.py"], ["src/*.ts"], False),
        (["**/test_*.py"], ["src/**"], True),
        (["src"], ["src/"], False),
        ([], ["**"], False),
        (["../x"], ["**"], False),
    ],
)
def test_scopes_as_people_write_them(one: list[str], other: list[str], expected: bool) -> None:
    assert bool(overlap(one, other)) is expected
    assert bool(overlap(other, one)) is expected


def test_a_hundred_scopes_are_compared_and_a_hostile_one_is_taken_for_a_conflict() -> None:
    scopes = [[f"src/m{number}/**", f"tests/**/test_{number}_*.py"] for number in range(100)]
    pairs = [bool(overlap(*pair)) for pair in combinations(scopes[:30], 2)]
    assert not any(pairs)
    hostile = ["/".join(["*a*b*c*d*e*f*"] * 6), "!" + "/".join(["*f*e*d*c*b*a*"] * 6)]
    assert overlap(hostile, ["**/*x*y*z*/" * 4 + "*", "!**/*a*x*/**/*b*"])
