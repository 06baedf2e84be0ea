import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.values import ChecklistItem
from handrail.verification.documents.checklist import (
    ChecklistProblem,
    check_checklist,
    complete_item,
    read_checklist,
)
from tests.hangs import no_hang

PLAN = """\
---
title: - [ ] not an item
---
# Plan

## Phase 1: Basics

- [ ] Parse the file (P1)
  The parser is small.
  Acceptance: all tests pass
  - [x] Lexer
\t- [~] Grammar
\t  - Acceptance: reads every example
- [X] Done already
- [-] Not needed

```
- [ ] in a fence
```

~~~~md
- [ ] in another
~~~
- [ ] still in it
~~~~

    - [ ] a block of code

<!-- - [ ] a comment
- [ ] still a comment -->

## Phase 2

* [ ] Star
+ [ ] Plus, priority: high
1. [ ] One
   1) [ ] Deeper
> - [ ] Quoted
-  [ ]  Wide
- [] no box
- [y] no mark
-[ ] no blank
- [ ]no blank either
- plain
  - [ ] below a plain bullet
- [ ]
"""


def test_items_are_read_with_phase_parent_acceptance_and_priority() -> None:
    items = read_checklist(PLAN.encode())
    shown = [(each.text, each.state, each.phase, each.level) for each in items]
    assert shown == [
        ("Parse the file (P1)", "open", "Phase 1: Basics", 0),
        ("Lexer", "done", "Phase 1: Basics", 1),
        ("Grammar", "in_progress", "Phase 1: Basics", 2),
        ("Done already", "done", "Phase 1: Basics", 0),
        ("Not needed", "skipped", "Phase 1: Basics", 0),
        ("Star", "open", "Phase 2", 0),
        ("Plus, priority: high", "open", "Phase 2", 0),
        ("One", "open", "Phase 2", 0),
        ("Deeper", "open", "Phase 2", 1),
        ("Quoted", "open", "Phase 2", 0),
        ("Wide", "open", "Phase 2", 0),
        ("below a plain bullet", "open", "Phase 2", 0),
        ("", "open", "Phase 2", 0),
    ]
    first = items[0]
    assert (first.priority, first.acceptance, first.description) == (
        "P1",
        ("all tests pass",),
        ("The parser is small.",),
    )
    assert (items[2].parent, items[2].acceptance) == (2, ("reads every example",))
    assert items[6].priority == "high"


def odd_checklist(pick: random.Random, count: int) -> tuple[bytes, list[int]]:
    """A checklist in odd formats, and where the marks of its items are."""
    data, marks = bytearray(pick.choice([b"", b"\xef\xbb\xbf"])), []
    newline = pick.choice([b"\n", b"\r\n"])
    depth = 0
    for number in range(count):
        depth = min(pick.choice([0, 0, depth, depth + 1]), 3) if number else 0
        if pick.random() < 0.3:
            depth = 0
            odd = [
                b"```\n- [ ] fence\n```",
                b"~~~\n* [x] fence\n~~~",
                b"<!-- - [ ] comment -->",
                b"## Phase \xc3\xa9",
                b"",
                b"text",
            ]
            odd += [
                b"<!--\n- [ ] comment\n-->",
                b"- [y] no item",
                b"| a | - [ ] |",
                b"`- [ ] code`",
                b"\t- [ ] code block",
            ]
            block = pick.choice(odd).replace(b"\n", newline)
            data += b"text" + newline + newline + block + newline + newline
        indent = pick.choice([b"  " * depth, b"\t" * depth]) if depth < 2 else b"  " * depth
        data += indent + pick.choice([b"-", b"*", b"+"]) + b" "
        data += b"[" + pick.choice([b" ", b"x", b"X", b"~", b"-"]) + b"]"
        marks.append(len(data) - 2)
        text = pick.choice(
            [
                "é 💡 text",
                "a [ ] b",
                "`- [x]`",
                "P2 [link](x)",
                "trailing  ",
                "tab\t",
                "**bold**: x",
                "\u202e odd",
            ]
        )
        data += f" {number} {text}".encode() + newline
        if pick.random() < 0.3:
            data += (
                indent
                + b"  "
                + pick.choice([b"Acceptance: it works", b"More - [ ] text", b"Priority: low"])
                + newline
            )
    if pick.random() < 0.5:
        del data[len(data) - len(newline) :]
    return bytes(data), marks


def tick(data: bytes, number: int, text: str) -> bytes:
    return complete_item(data, ChecklistItem("plan.md", number, text))


@pytest.mark.promise("DOCS-3")
@pytest.mark.parametrize("seed", range(6))
def test_500_oddly_formatted_items_are_ticked_with_no_other_byte_changed(seed: int) -> None:
    data, marks = odd_checklist(random.Random(seed), 500)
    items = read_checklist(data)
    assert [each.mark_at for each in items] == marks
    ticked = data
    for each in items[seed :: 4 if seed == 0 else 50]:
        before, ticked = ticked, tick(ticked, each.number, each.text)
        assert ticked[each.mark_at : each.mark_at + 1] == b"x"
        assert len(ticked) == len(before)
        changed = {at for at in range(len(before)) if before[at] != ticked[at]}
        assert changed <= set(marks[: each.number]), "only marks: the item's, and of those that it completes"
    assert check_checklist("plan.md", data, ticked) == ()
    assert [each.mark_at for each in read_checklist(ticked)] == marks


@pytest.mark.promise("DOCS-3")
@given(st.integers(0, 10_000), st.sampled_from(["item", "tick", "swap", "edit"]))
def test_lost_item_or_tick_is_found(seed: int, how: str) -> None:
    pick = random.Random(seed)
    data, _ = odd_checklist(pick, 12)
    items = read_checklist(data)
    each = pick.choice(items)
    lines = data.splitlines(keepends=True)
    match how:
        case "item":
            del lines[each.line - 1]
            new = b"".join(lines)
        case "tick":
            data = tick(data, each.number, each.text)
            new = data[: each.mark_at] + b" " + data[each.mark_at + 1 :]
        case "swap":
            first, last = items[0].line - 1, items[-1].line - 1
            lines[first], lines[last] = (
                lines[last].rstrip(b"\r\n") + b"\n",
                lines[first].rstrip(b"\r\n") + b"\n",
            )
            new = b"".join(lines)
        case _:
            new = data.replace(f" {each.number - 1} ".encode(), b" changed ", 1)
    assert check_checklist("plan.md", data, new) != ()


def test_new_items_text_and_other_marks_are_no_loss() -> None:
    old = b"- [x] a\n- [ ] b\n- [ ] b\n"
    new = b"# Plan\n- [ ] a\n- [x] a\n  note\n- [~] b\n- [ ] c\n- [-] b\n"
    assert check_checklist("plan.md", old, new) == ()


def test_item_that_moved_is_found_by_its_text_or_refused() -> None:
    assert tick(b"- [ ] new\n- [ ] a\n", 1, "a") == b"- [ ] new\n- [x] a\n"
    assert tick(b"- [ ] a\n- [ ] a\n", 2, "a") == b"- [ ] a\n- [x] a\n"
    with pytest.raises(ChecklistProblem, match="no longer"):
        tick(b"- [ ] b\n", 1, "a")
    with pytest.raises(ChecklistProblem, match="2 times"):
        tick(b"- [ ] x\n- [ ] a\n- [ ] a\n", 1, "a")


def test_deleted_or_huge_checklist_is_an_issue() -> None:
    assert check_checklist("plan.md", b"- [ ] a\n", None)[0].message == "the checklist was deleted"
    assert "limit" in check_checklist("plan.md", b"- [ ] a\n", b"x" * 6_000_000)[0].message


SIZE = 100_000
HOSTILE = {
    "a head that does not end": b"---\r\n" + b"a\r\n" * (SIZE // 3),
    "blanks in a heading": b"# a" + b" " * SIZE + b"x",
    "marks in a heading": b"# " + b" #" * (SIZE // 2) + b"x",
    "one run of backticks": b"x" + b"`" * SIZE + b" -- " + b"a" * SIZE,
    "runs of backticks": b"x" + b" ".join(b"`" * number for number in range(400)) + b" --" + b"a" * SIZE,
    "priorities": b"- [ ] " + b"priority: " * (SIZE // 10),
}


@pytest.mark.promise("DOCS-3")
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_no_line_makes_the_reader_spin(data: bytes) -> None:
    """A pattern that can read a line in two ways would try all of them: a head of 40 lines took for ever."""
    with no_hang():
        (item,) = read_checklist(data + b"\n\n- [ ] Last\n")[-1:]
    assert item.text == "Last"


@pytest.mark.parametrize(
    ("line", "is_comment"),
    [
        (b"a `<!--` b", False),
        (b"a ``<!-- ` --`` b", False),
        (b"a ``<!--` b", True),
        (b"a `b` <!-- `c`", True),
        (b"a ```b`` <!-- `c`", True),
    ],
)
def test_comment_marks_in_code_do_not_begin_a_comment(line: bytes, is_comment: bool) -> None:
    assert (len(read_checklist(line + b"\n- [ ] One\n")) == 0) is is_comment


def test_heading_is_the_phase_without_its_closing_marks() -> None:
    (item,) = read_checklist(b"## Phase 1 ##  \n- [ ] One\n")
    assert item.phase == "Phase 1"
