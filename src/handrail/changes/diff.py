"""Unified diffs for display, in time proportional to the size of the change."""

import difflib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

CONTEXT = 3
COMPARED_LINES = 4_000
"""A longer changed part is shown as removed and added, without looking for lines that stayed."""
MAX_DIFF_LINES = 2_000
"""Long enough that users see what they are asked to approve."""


class Diff(NamedTuple):
    text: str
    added: int
    removed: int


Opcode = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


class _Compared(difflib.SequenceMatcher[str]):
    """A comparison whose result is known."""

    def __init__(self, codes: list[Opcode]) -> None:
        super().__init__()
        self._codes = codes

    def get_opcodes(self) -> list[Opcode]:
        return self._codes


def diff(
    path: str, old: str | None, new: str | None, shown_lines: int = MAX_DIFF_LINES, *, old_path: str = ""
) -> Diff:
    """What changes between two texts; None stands for no file. `old_path` is where a moved file was."""
    before, after = _lines(old or ""), _lines(new or "")
    codes = opcodes(before, after)
    changed = [code for code in codes if code[0] != "equal"]
    added = sum(code[4] - code[3] for code in changed)
    removed = sum(code[2] - code[1] for code in changed)
    old_name = "/dev/null" if old is None else old_path or path
    lines = [f"--- {old_name}", f"+++ {'/dev/null' if new is None else path}"]
    for group in _Compared(codes).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@")
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[a:b]]
            else:
                lines += [f"-{line}" for line in before[a:b]]
                lines += [f"+{line}" for line in after[c:d]]
    left_out = len(lines) - shown_lines
    if left_out > 0:
        lines = [*lines[:shown_lines], f"[{left_out} more lines of the diff are not shown]"]
    return Diff("\n".join(lines), added, removed)


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + "\n\\ No newline at end of file"]


def opcodes(before: list[str], after: list[str]) -> list[Opcode]:
    """Like SequenceMatcher.get_opcodes, on the part that differs only."""
    head, end_before, end_after = changed_span(before, after)
    codes: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    if max(end_before, end_after) - head > COMPARED_LINES:
        codes.append(("replace", head, end_before, head, end_after))
    else:
        matcher = difflib.SequenceMatcher(isjunk=None, a=before[head:end_before], b=after[head:end_after])
        for tag, a, b, c, d in matcher.get_opcodes():
            codes.append((tag, a + head, b + head, c + head, d + head))
    if end_before < len(before):
        codes.append(("equal", end_before, len(before), end_after, len(after)))
    return codes


def changed_span(before: Sequence[Any], after: Sequence[Any]) -> tuple[int, int, int]:
    """Where two sequences begin to differ, and where the differing part ends in each."""
    head = common_prefix(before, after)
    tail = common_prefix(before[head:][::-1], after[head:][::-1])
    return head, len(before) - tail, len(after) - tail


def common_prefix(one: Sequence[Any], two: Sequence[Any]) -> int:
    """How many items at the start are the same; halving costs only a few slices."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
