"""Merging results: independent changes in any order, overlaps with both sides, deletions, new files."""

from collections.abc import Mapping
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.engine.split.merging import MergedFiles, merge_results
from handrail.protocol.events import ConflictSettled, SubtaskDone
from handrail.protocol.subtask import SubtaskFile

LINES = [f"line {number}\n" for number in range(40)]
NONE: Mapping[str, str | None] = {}
BASE = "".join(LINES).encode()


class Contents:
    """Stored contents, and results that name them."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def result(
        self, name: str, new: bytes | None, base: bytes | None = BASE, path: str = "a.py"
    ) -> SubtaskDone:
        return SubtaskDone(name, (SubtaskFile(path, self._keep(base), self._keep(new)),))

    def merged(
        self, *results: SubtaskDone, now: bytes | None = BASE, settled: Mapping[str, str | None] = NONE
    ) -> MergedFiles:
        known = {name: ConflictSettled(name, "text", text) for name, text in settled.items()}
        return merge_results({"a.py": now}, results, self._blobs.get, known)

    def _keep(self, data: bytes | None) -> str:
        if data is None:
            return ""
        key = sha256(data).hexdigest()
        self._blobs[key] = data
        return key


def changed(*numbers: int, by: str = "x") -> bytes:
    lines = [f"{by} {at}\n" if at in numbers else text for at, text in enumerate(LINES)]
    return "".join(lines).encode()


@given(st.permutations(range(0, 40, 4)))
def test_changes_of_different_lines_are_all_there_in_any_order(order: list[int]) -> None:
    contents = Contents()
    found = contents.merged(*(contents.result(f"t{number}", changed(number)) for number in order))
    assert (found.files["a.py"], found.conflicts) == (changed(*order), ())


@given(st.sets(st.integers(0, 39), min_size=1), st.sets(st.integers(0, 39), min_size=1))
def test_every_overlap_is_a_conflict_and_no_other_change_is_lost(one: set[int], two: set[int]) -> None:
    contents = Contents()
    found = contents.merged(
        contents.result("one", changed(*one, by="one")), contents.result("two", changed(*two, by="two"))
    )
    text = (found.files["a.py"] or b"").decode()
    sides = "".join((each.theirs or "") + (each.ours or "") for each in found.conflicts)
    for number in one:
        assert f"one {number}\n" in text
    for number in two:
        assert f"two {number}\n" in text + sides
        if number in one:
            assert f"two {number}\n" in sides


def test_settled_conflict_stands_in_the_result_and_the_others_stay_open() -> None:
    contents = Contents()
    results = (
        contents.result("one", changed(3, 20, by="one")),
        contents.result("two", changed(3, 20, by="two")),
    )
    first, second = contents.merged(*results).conflicts
    found = contents.merged(*results, settled={first.id: "both\n"})
    assert [each.id for each in found.conflicts] == [second.id]
    assert b"both\n" in (found.files["a.py"] or b"")
    assert contents.merged(*results, settled={first.id: "a\n", second.id: "b\n"}).conflicts == ()


@pytest.mark.parametrize(("one", "two"), [(None, changed(3)), (changed(3), None)])
def test_deletion_against_a_change_is_a_conflict_of_the_whole_file(
    one: bytes | None, two: bytes | None
) -> None:
    contents = Contents()
    results = (contents.result("one", one), contents.result("two", two))
    (conflict,) = contents.merged(*results).conflicts
    assert (conflict.ours is None, conflict.theirs is None) == (one is None, two is None)
    assert contents.merged(*results, settled={conflict.id: None}).files == {"a.py": None}


def test_two_new_files_of_one_name_conflict_unless_they_are_equal() -> None:
    contents = Contents()
    same = [contents.result(name, b"new\n", base=None) for name in ("one", "two")]
    assert contents.merged(*same, now=None).conflicts == ()
    other = contents.result("three", b"other\n", base=None)
    (conflict,) = contents.merged(same[0], other, now=None).conflicts
    assert (conflict.ours, conflict.theirs) == ("new\n", "other\n")


def test_result_that_was_given_another_one_adds_to_it() -> None:
    contents = Contents()
    first = contents.result("first", changed(3))
    second = contents.result("second", changed(3, 5), base=changed(3))
    other = contents.result("other", changed(30))
    assert contents.merged(first, other, second).files == {"a.py": changed(3, 5, 30)}
