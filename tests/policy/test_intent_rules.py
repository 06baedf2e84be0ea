"""What an owned scope covers."""

import pytest

from handrail.policy.intent_rules import in_scope


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


def test_a_negation_that_cannot_be_spelled_out_leaves_nothing_owned() -> None:
    assert not in_scope("x", ["**", "!" + "{a,b}" * 40])
