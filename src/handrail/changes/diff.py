"""A unified diff to look at, in time that follows the size of the change, not of the file."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

CONTEXT = 3
COMPARED_LINES = 4_000
"""A changed stretch longer than this is shown as removed and added, without looking for what stayed."""
SHOWN_LINES = 2_000
"""What a user is asked to approve should be there to be seen."""


class Diff(NamedTuple):
    text: str
    added: int
    removed: int


Opcode = tuple[str, int, int, int, int]


def diff(path: str, old: str | None, new: str | None, shown_lines: int = SHOWN_LINES) -> Diff:
    """What changes between two texts; None stands for no file."""
    before, after = _lines(old or ""), _lines(new or "")
    codes = opcodes(before, after)
    changed = [code for code in codes if code[0] != "equal"]
    added = sum(code[4] - code[3] for code in changed)
    removed = sum(code[2] - code[1] for code in changed)
    lines = [f"--- {'/dev/null' if old is None else path}", f"+++ {'/dev/null' if new is None else path}"]
    for group in _groups(codes):
        lines += _hunk(group, before, after)
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
    head, end_before, end_after = differing(before, after)
    tail = len(before) - end_before
    middle: list[Opcode]
    if max(end_before, end_after) - head > COMPARED_LINES:
        middle = [("replace", head, end_before, head, end_after)]
    else:
        matcher = difflib.SequenceMatcher(
            isjunk=None, a=before[head:end_before], b=after[head:end_after], autojunk=True
        )
        middle = [
            (tag, one + head, two + head, three + head, four + head)
            for tag, one, two, three, four in matcher.get_opcodes()
        ]
    first: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    last: list[Opcode] = [("equal", end_before, len(before), end_after, len(after))] if tail else []
    return [*first, *middle, *last]


def differing(before: list[str], after: list[str]) -> tuple[int, int, int]:
    """Where two texts begin to differ, and where in each of them they end to."""
    head = alike(before, after)
    tail = alike(before[head:][::-1], after[head:][::-1])
    return head, len(before) - tail, len(after) - tail


def alike(one: Sequence[Any], two: Sequence[Any]) -> int:
    """How many items from the start are the same; halves are compared, which costs a few slices."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _groups(codes: list[Opcode]) -> list[list[Opcode]]:
    groups: list[list[Opcode]] = []
    current: list[Opcode] = []
    for number, (tag, a, b, c, d) in enumerate(codes):
        if tag != "equal":
            current.append((tag, a, b, c, d))
            continue
        first, last = number == 0, number == len(codes) - 1
        if not first and not last and b - a <= 2 * CONTEXT:
            current.append((tag, a, b, c, d))
            continue
        if not first:
            cut = min(b - a, CONTEXT)
            groups.append([*current, ("equal", a, a + cut, c, c + cut)])
        cut = min(b - a, CONTEXT)
        current = [] if last else [("equal", b - cut, b, d - cut, d)]
    return [*groups, current] if current else groups


def _hunk(group: list[Opcode], before: list[str], after: list[str]) -> list[str]:
    first, last = group[0], group[-1]
    lines = [f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"]
    for tag, a, b, c, d in group:
        if tag == "equal":
            lines += [f" {line}" for line in before[a:b]]
        else:
            lines += [f"-{line}" for line in before[a:b]]
            lines += [f"+{line}" for line in after[c:d]]
    return lines


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
