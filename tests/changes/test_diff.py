import difflib

from hypothesis import given
from hypothesis import strategies as st

from handrail.changes.diff import diff

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d"]), max_size=40)


@given(before=LINES, after=LINES)
def test_counts_and_hunks_describe_the_change(before: list[str], after: list[str]) -> None:
    old, new = "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after)
    found = diff("f", old, new, shown_lines=10_000)
    body = found.text.split("\n")[2:]
    assert found.added == sum(line.startswith("+") for line in body)
    assert found.removed == sum(line.startswith("-") for line in body)
    assert found.added - found.removed == len(after) - len(before)
    assert patched(before, body) == after


def patched(lines: list[str], body: list[str]) -> list[str]:
    """What a unified diff makes of some lines, in the simplest way to apply one."""
    result: list[str] = []
    position = 0
    for row in body:
        if row.startswith("@@"):
            start, _, length = row.split()[1][1:].partition(",")
            begin = int(start) - (length != "0")
            result += lines[position:begin]
            position = begin
        elif row.startswith(" "):
            assert lines[position] == row[1:]
            result.append(row[1:])
            position += 1
        elif row.startswith("-"):
            assert lines[position] == row[1:]
            position += 1
        else:
            result.append(row[1:])
    return result + lines[position:]


def test_a_small_change_reads_like_any_unified_diff() -> None:
    before = [f"line {n}" for n in range(1, 21)]
    after = [*before[:9], "changed", *before[10:]]
    usual = list(difflib.unified_diff(before, after, "f", "f", lineterm=""))
    assert diff("f", "\n".join(before) + "\n", "\n".join(after) + "\n").text.split("\n") == usual


def test_a_new_file_is_all_added() -> None:
    found = diff("f", None, "a\nb\n")
    assert found.text == "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b"
    assert (found.added, found.removed) == (2, 0)


def test_a_long_diff_is_cut_and_says_so() -> None:
    found = diff("f", "", "x\n" * 3_000)
    assert found.added == 3_000
    assert len(found.text.split("\n")) == 2_001
    assert "more lines" in found.text


def test_two_long_unlike_texts_are_not_compared_line_by_line() -> None:
    old, new = "a\n" * 20_000, "b\n" * 30_000
    found = diff("f", old, new)
    assert (found.added, found.removed) == (30_000, 20_000)
