"""Edits by line numbers and by diffs, against the simplest possible ways to do the same."""

import difflib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from handrail.changes.diff import diff
from handrail.changes.forms.edit_forms import LineEdit
from handrail.changes.forms.patch import apply_patch, read_diff
from handrail.changes.forms.replace import apply_line_edits
from handrail.changes.text_matching import find_lines, split_lines
from handrail.protocol.errors import PathProblem

BODIES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "--x", "++y", "@@"]), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n"])


def text_of(bodies: list[str], end: str = "\n", *, ended: bool = True) -> str:
    text = "".join(body + end for body in bodies)
    return text if ended else text.removesuffix(end)


@pytest.mark.promise("CHG-33")
@given(bodies=BODIES, new=BODIES, end=ENDS, data=st.data())
def test_a_range_of_lines_is_replaced_and_the_others_keep_their_bytes(
    bodies: list[str], new: list[str], end: str, data: st.DataObject
) -> None:
    assume(bodies)
    first = data.draw(st.integers(1, len(bodies)))
    last = data.draw(st.integers(first, len(bodies)))
    form = LineEdit("replace", first, last, tuple(new))
    expected = [*bodies[: first - 1], *new, *bodies[last:]]
    assert apply_line_edits("f", text_of(bodies, end), (form,)).text == text_of(expected, end)


@given(bodies=BODIES, start=st.integers(-3, 20), stop=st.integers(-3, 20))
def test_lines_that_are_not_there_are_refused(bodies: list[str], start: int, stop: int) -> None:
    assume(not 1 <= start <= stop <= len(bodies))
    for form in (LineEdit("delete", start, stop), LineEdit("replace", start, stop, ("x",))):
        with pytest.raises(PathProblem) as caught:
            apply_line_edits("f", text_of(bodies), (form,))
        assert caught.value.reason == "out_of_range"


@pytest.mark.promise("CHG-33")
@given(before=BODIES, after=BODIES, end=ENDS, ended=st.booleans())
def test_a_diff_of_two_texts_makes_one_of_the_other(
    before: list[str], after: list[str], end: str, *, ended: bool
) -> None:
    old, new = text_of(before, end, ended=ended), text_of(after, end, ended=ended)
    assume("\n" in old and new and old != new and old.endswith("\n") == new.endswith("\n"))
    written = diff("f", old, new).text
    assert apply_patch("f", old, read_diff("f", written)).text == new


@given(before=BODIES, after=BODIES, drift=st.integers(-9, 9))
def test_wrong_line_numbers_are_right_where_the_lines_stand_once_and_else_refused(
    before: list[str], after: list[str], drift: int
) -> None:
    rows = list(difflib.unified_diff(before, after, "f", "f", lineterm=""))
    assume(sum(row.startswith("@@ ") for row in rows) == 1)
    head = next(n for n, row in enumerate(rows) if row.startswith("@@ -"))
    start, _, count = rows[head].split()[1][1:].partition(",")
    assume(count != "0")
    rows[head] = rows[head].replace(f"-{start}", f"-{max(1, int(start) + drift)}", 1)
    try:
        result = apply_patch("f", text_of(before), read_diff("f", "\n".join(rows) + "\n")).text
    except PathProblem:
        return
    old = [row[1:] for row in rows[head + 1 :] if row[0] in " -"]
    places = [n + 1 for n in range(len(before)) if before[n : n + len(old)] == old]
    if len(places) == 1:
        assert result == text_of(after)
    else:
        assert max(1, int(start) + drift) in places


@pytest.mark.parametrize("cut", range(1, 200))
def test_no_beginning_of_a_diff_is_taken_for_the_whole(cut: int) -> None:
    old = text_of([f"line {number}" for number in range(20)])
    new = old.replace("line 7\nline 8\n", "new 7\nnew 7b\n").replace("line 15\n", "")
    written = diff("f", old, new).text + "\n"
    if len(written[:cut].rstrip("\n")) >= len(written.rstrip("\n")):
        return
    try:
        result = apply_patch("f", old, read_diff("f", written[:cut])).text
    except PathProblem:
        return
    # Only a diff that ends between two hunks is whole as far as it goes.
    assert result == old.replace("line 7\nline 8\n", "new 7\nnew 7b\n")


@pytest.mark.promise("CHG-30")
def test_lines_that_differ_only_in_their_endings_come_before_other_indentation() -> None:
    step, found = find_lines(split_lines("a\r\n a\n"), split_lines("a\n"))
    assert (step, [match.first for match in found]) == ("line endings", [0])
