from copy import deepcopy
from typing import Literal, NamedTuple

import pytest
from pydantic import ValidationError

from handrail.protocol.values import Usage
from handrail.sessions.fold import Fold, restored, stored


class Step(NamedTuple):
    name: str
    done: bool


class Inner(Fold):
    words: list[str] = []  # noqa: RUF012


class Outer(Fold):
    kind: Literal["a", "b"]
    inner: Inner = Inner()
    known: dict[str, Inner] = {}  # noqa: RUF012
    steps: tuple[Step, ...] = ()
    usage: Usage = Usage()
    last: Inner | None = None


def test_defaults_that_can_change_are_each_folds_own() -> None:
    first, second = Outer("a"), Outer("a")
    first.inner.words.append("x")
    first.known["k"] = Inner(words=["y"])
    first.kind = "b"
    assert second == Outer(kind="a", inner=Inner(words=[]), known={})
    assert Inner().words == []


def test_a_snapshot_brings_back_an_equal_fold() -> None:
    fold = Outer("b", known={"k": Inner(["y"])}, steps=(Step("s", done=True),), usage=Usage(input_tokens=3))
    fold.inner.words += ["é", "x"]
    again = restored(Outer, stored(fold))
    assert again == fold == deepcopy(fold)
    again.inner.words.append("z")
    assert again != fold


@pytest.mark.parametrize("data", ["{}", '{"kind": "c"}', '{"kind": "a", "inner": 3}', "[]", "{"])
def test_a_snapshot_that_is_none_is_refused(data: str) -> None:
    with pytest.raises(ValidationError):
        restored(Outer, data)


def test_what_an_older_snapshot_lacks_has_its_default() -> None:
    assert restored(Outer, '{"kind": "a", "gone": 1}') == Outer("a")
