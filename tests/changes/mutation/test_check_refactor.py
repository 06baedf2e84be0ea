"""Pairs of before and after: what changes behaviour is never confirmed as a refactor."""

from typing import Any

import pytest

from handrail.changes.mutation import Version, check_refactor
from tests.changes.mutation.pairs_file import Pair, pairs

LANGUAGES = {"python": ".py", "javascript": ".js", "typescript": ".ts"}


def chosen(kind: str) -> list[Any]:
    return [
        pytest.param(ending, pair, id=f"{ending}: {pair.name}")
        for language, ending in LANGUAGES.items()
        for pair in pairs(f"{language}.txt")
        if pair.kind == kind
    ]


def why(*files: tuple[str, str, str]) -> str:
    return check_refactor([Version(*each) for each in files]).why


@pytest.mark.promise("MUT-1")
@pytest.mark.parametrize(("ending", "pair"), chosen("changed"))
def test_a_change_of_behaviour_does_not_pass_as_a_refactor(ending: str, pair: Pair) -> None:
    assert why((f"a{ending}", pair.before, pair.after)).startswith("line ")
    assert why((f"a{ending}", pair.after, pair.before)).startswith("line ")


@pytest.mark.promise("MUT-2")
@pytest.mark.parametrize(("ending", "pair"), chosen("kept"))
def test_a_refactor_is_confirmed(ending: str, pair: Pair) -> None:
    assert why((f"a{ending}", pair.before, pair.after)) == ""
    assert why((f"a{ending}", pair.after, pair.before)) == ""


@pytest.mark.parametrize(("ending", "pair"), chosen("alarm"))
def test_a_refactor_that_the_check_does_not_prove_counts_as_a_change(ending: str, pair: Pair) -> None:
    assert why((f"a{ending}", pair.before, pair.after)).startswith("line ")


def test_the_reason_is_the_first_difference() -> None:
    before = "def f(a):\n    b = a + 1\n    return b\n"
    assert why(("x/a.py", before, before.replace("+ 1", "+ 2"))) == (
        "line 2 of x/a.py: `b = a + 1` became `b = a + 2`"
    )
    assert why(("a.py", before, before.replace("(a)", "(c)").replace("= a", "= c"))) == (
        "line 1 of a.py: a became c, but it is a parameter, an import or special"
    )
    assert why(("a.py", "", "x = 1\n")) == "line 1 of a.py: `` became `x = 1`"


def test_a_private_name_is_renamed_in_all_files_of_the_change() -> None:
    sums = "def _sum(xs):\n    return len(xs)\n"
    other = "from sums import _sum\n\ndef twice(xs):\n    return 2 * _sum(xs)\n"
    renamed = [("sums.py", sums, sums.replace("_sum", "_total"))]
    assert why(*renamed, ("other.py", other, other.replace("_sum", "_total"))) == ""
    assert "_sum" in why(*renamed, ("other.py", other, other + "\n# more\n"))


def test_what_other_files_could_use_is_named() -> None:
    before = "class Cache:\n    def __init__(self):\n        self._d = {}\n"
    checked = check_refactor([Version("app/cache.py", before, before.replace("_d", "_entries"))])
    assert checked.words == ("_d", "_entries")
    assert checked.known_by == ("Cache", "cache")


@pytest.mark.promise("MUT-1")
def test_what_cannot_be_checked_is_no_refactor() -> None:
    assert "cannot be checked" in why(("a.sh", "echo 1\n", "echo 2\n"))
    assert "cannot be checked" in why(("prompt.md", "Be kind.\n", "Be rude.\n"))
    assert "cannot be parsed" in why(("a.py", "x = 1\n", "x = \n"))
    assert "cannot be parsed" in why(("a.ts", "let x = 1\n", "let x = = 1\n"))
    assert "cannot be parsed" in why(("a.js", "x = 1\n", "x = 1 <!-- y\n"))
    assert check_refactor([Version("a.py", None, "x = 1\n")]).why == "a.py is new"
    assert check_refactor([Version("a.py", "x = 1\n", None)]).why == "a.py is gone"
