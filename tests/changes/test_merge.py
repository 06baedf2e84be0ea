"""Three versions made one: what both sides changed is there, and what they both changed is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.changes.merge import Merged, merge

BASE = b"one\ntwo\nthree\nfour\nfive\n"


def merged(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    found = merge(base, ours, theirs)
    assert found
    return found


def test_changes_of_different_lines_are_both_there() -> None:
    ours = BASE.replace(b"one", b"ONE") + b"six\n"
    theirs = BASE.replace(b"four\n", b"")
    assert merged(BASE, ours, theirs) == (b"ONE\ntwo\nthree\nfive\nsix\n", ())


def test_the_same_change_on_both_sides_is_made_once() -> None:
    both = BASE.replace(b"two", b"TWO")
    assert merged(BASE, both, both) == (both, ())


def test_lines_that_both_changed_are_a_clash_with_all_three_texts() -> None:
    ours, theirs = BASE.replace(b"three", b"ours"), BASE.replace(b"three", b"theirs")
    found = merged(b"zero\n" + BASE, b"zero\n" + ours, b"zero\n" + theirs)
    assert found.clashes == ((4, b"three\n", b"ours\n", b"theirs\n"),)
    assert found.data == b"zero\n" + ours


def test_insertions_at_one_place_are_a_clash() -> None:
    ours, theirs = BASE + b"ours\n", BASE + b"theirs\n"
    assert len(merged(BASE, ours, theirs).clashes) == 1


def test_a_line_removed_here_and_changed_there_is_a_clash() -> None:
    assert merged(BASE, BASE.replace(b"two\n", b""), BASE.replace(b"two", b"TWO")).clashes


def test_line_endings_and_a_missing_final_break_survive() -> None:
    base = b"a\r\nb\r\nc\r\nd"
    assert merged(base, base.replace(b"a", b"A"), base.replace(b"d", b"D")) == (b"A\r\nb\r\nc\r\nD", ())


@pytest.mark.parametrize("data", [b"a\0b", b"x\n" * 20_001])
def test_what_cannot_be_compared_by_lines_is_not_merged(data: bytes) -> None:
    assert merge(b"a\n", data, b"b\n") is None


texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n"]), max_size=8).map(b"".join)


@given(base=texts, other=texts)
def test_a_side_that_changed_nothing_leaves_the_other_as_it_is(base: bytes, other: bytes) -> None:
    assert merged(base, base, other) == (other, ())
    assert merged(base, other, base) == (other, ())


@given(base=texts, ours=texts, theirs=texts)
def test_without_a_clash_both_orders_give_the_same(base: bytes, ours: bytes, theirs: bytes) -> None:
    one, two = merged(base, ours, theirs), merged(base, theirs, ours)
    assert bool(one.clashes) == bool(two.clashes)
    if not one.clashes:
        assert one.data == two.data


@given(
    lines=st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=3, max_size=9),
    ours=st.integers(0, 8),
    theirs=st.integers(0, 8),
)
def test_two_lines_apart_never_clash(lines: list[bytes], ours: int, theirs: int) -> None:
    ours, theirs = ours % len(lines), theirs % len(lines)
    if abs(ours - theirs) < 2:
        return
    numbered = [b"%d %s\n" % (number, line) for number, line in enumerate(lines)]

    def side(*places: int) -> bytes:
        return b"".join(b"new\n" if at in places else line for at, line in enumerate(numbered))

    assert merged(b"".join(numbered), side(ours), side(theirs)) == (side(ours, theirs), ())
