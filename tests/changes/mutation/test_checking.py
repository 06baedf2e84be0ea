"""Pairs of before and after: what keeps behaviour holds, what changes it never does."""

from typing import Any

import pytest

from handrail.changes.mutation.checking import Version, check_refactor
from tests.changes.mutation.pairs_file import FOLDER, Pair, pairs

LANGUAGES = {"python": ".py", "javascript": ".js", "typescript": ".ts"}


def chosen(*, kept: bool) -> list[Any]:
    return [
        pytest.param(ending, pair, id=f"{ending}: {pair.name}")
        for file in sorted(FOLDER.iterdir())
        for ending in [LANGUAGES[file.stem.partition("-")[0]]]
        for pair in pairs(file.name)
        if pair.kept == kept
    ]


@pytest.mark.promise("MUT-1")
@pytest.mark.parametrize(("ending", "pair"), chosen(kept=False))
def test_a_change_of_behaviour_does_not_pass_as_a_refactor(ending: str, pair: Pair) -> None:
    checked = check_refactor([Version(f"a{ending}", pair.before, pair.after)])

    assert checked.verdict == "flagged"
    assert checked.why


@pytest.mark.promise("MUT-2")
@pytest.mark.parametrize(("ending", "pair"), chosen(kept=True))
def test_a_refactor_holds(ending: str, pair: Pair) -> None:
    checked = check_refactor([Version(f"a{ending}", pair.before, pair.after)])

    assert (checked.verdict, checked.why) == ("holds", "")
