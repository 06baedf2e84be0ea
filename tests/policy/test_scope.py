"""What an owned scope covers."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.scope import covers, in_scope

LETTERS = st.text("ab.", min_size=1, max_size=5).filter(lambda name: set(name) != {"."})
PATTERNS = st.text("ab.*?", min_size=1, max_size=6).filter(lambda name: set(name) != {"."})


@pytest.mark.promise("POL-20")
@pytest.mark.parametrize(
    ("scope", "path", "owned"),
    [
        (["src/api/**"], "src/api/x.py", True),
        (["src/api/**"], "src/api/deep/er/x.py", True),
        (["src/api/**"], "src/api/.hidden", True),
        (["src/api/**"], "src/api", False),
        (["src/api/**"], "src/api.py", False),
        (["src/api/**"], "src/apix/x.py", False),
        (["src/api/"], "src/api/x.py", True),
        (["src/api"], "src/api/x.py", False),
        (["src/main.py"], "src/main.py", True),
        (["src/main.py"], "src/main.pyc", False),
        (["src/main.py"], "x/src/main.py", False),
        (["src/*.py"], "src/a/b.py", False),
        (["src/**/*.py"], "src/a.py", True),
        (["src/**/*.py"], "src/a/b/c.py", True),
        (["**/test_*.py"], "test_a.py", True),
        (["**"], "a", True),
        (["*"], "a/b", False),
        (["./src/**"], "src/a", True),
        (["/src/**"], "src/a", True),
        (["src\\api\\**"], "src/api/x", True),
        (["src//api/**"], "src/api/x", True),
        (["../**"], "x", False),
        (["src/../**"], "x", False),
        ([""], "x", False),
        ([], "x", False),
        (["!a"], "b", False),
        (["src/**", "!src/gen/**"], "src/gen/x", False),
        (["!src/gen/**", "src/**"], "src/gen/x", False),
        (["src/**", "!src/gen/**"], "src/generated", True),
        (["src/[id].tsx"], "src/[id].tsx", True),
        (["src/[id]/**"], "src/[id]/page.tsx", True),
        (["src/[...slug]/*"], "src/[...slug]/page.tsx", True),
        (["src/[ab].py"], "src/a.py", True),
        (["src/[!ab].py"], "src/a.py", False),
        (["src/[!ab].py"], "src/c.py", True),
        (["src/[a-c].py"], "src/b.py", True),
        (["src/a[.py"], "src/a[.py", True),
        (["src/Ä.py"], "src/A\u0308.py", True),
        (["SRC/**"], "src/a", False),
        (["src/{a,b}/**"], "src/b/x", True),
        (["src/{a,b}/**"], "src/c/x", False),
        (["src/*.{ts,tsx}"], "src/a.tsx", True),
        (["{a,b{c,d}}"], "bd", True),
        (["src/{id}.ts"], "src/{id}.ts", True),
    ],
)
def test_a_scope_covers_what_it_says_and_no_more(scope: list[str], path: str, owned: bool) -> None:
    assert in_scope(path, scope) is owned


@given(PATTERNS, LETTERS)
def test_within_one_name_a_glob_means_what_globs_mean(pattern: str, name: str) -> None:
    if pattern.replace("*", "") or pattern == "*":
        assert covers(pattern, name) == fnmatchcase(name, pattern)


@given(st.lists(LETTERS, min_size=1, max_size=4), st.lists(LETTERS, max_size=3))
def test_two_stars_span_any_number_of_folders(path: list[str], before: list[str]) -> None:
    assert covers("/".join([*before, "**", path[-1]]), "/".join([*before, *path]))


def test_no_pattern_takes_long() -> None:
    assert not covers("*a" * 60 + "b", "a" * 255)
    assert not covers("**/a/" * 30 + "b", "a/" * 200 + "c")
    assert not covers("{a,b}" * 40, "a" * 40)


def test_a_negation_that_cannot_be_spelled_out_leaves_nothing_owned() -> None:
    assert not in_scope("x", ["**", "!" + "{a,b}" * 40])
