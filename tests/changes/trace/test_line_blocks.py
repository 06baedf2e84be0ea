"""The blocks of lines that a change brings."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.changes.trace.line_blocks import block_hash, changed_ranges, line_keys

LINES = st.lists(st.sampled_from([b"a", b"b", b"", b" c", b"d d"]), max_size=7)
END = st.sampled_from([b"", b"\n"])
TEXTS = st.builds(lambda lines, end: b"\n".join(lines) + end, LINES, END)


@given(TEXTS, TEXTS)
def test_what_is_not_in_a_block_was_there_before_in_this_order(old: bytes, new: bytes) -> None:
    before, after = iter(line_keys(old)), line_keys(new)
    blocks = changed_ranges(old, new)

    changed = {at for block in blocks for at in range(block.start - 1, block.end)}
    assert all(block.sha256 == block_hash(after[block.start - 1 : block.end]) for block in blocks)
    assert all(key in before for at, key in enumerate(after) if at not in changed)


def test_a_line_at_the_end_of_a_large_file_is_the_only_one_looked_at() -> None:
    text = b"".join(b"line %d\n" % number for number in range(50_000))

    (block,) = changed_ranges(text, text + b"new\n")

    assert (block.start, block.end) == (50_001, 50_001)


def test_a_text_that_was_not_changed_brings_nothing() -> None:
    assert changed_ranges(b"a\nb\n", b"a\nb\n") == ()
    assert changed_ranges(None, b"a\n")[0].end == 1
