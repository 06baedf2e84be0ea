"""Markdown as it streams."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from handrail.interfaces.cli.render.markdown import Markdown, render_markdown
from handrail.interfaces.cli.render.styles import ansi, plain

PAGE = """\
# What is wrong
The **discount** is applied *after* tax in `total()`, which is long enough to be wrapped here.

- a short item
- an item that is so long that it does not fit on one line of this rather narrow screen
  1. nested
> a quote

```python
def total():
    return `not code`  # **not bold**
```
| a | b |
2 * 3 * 4 and snake_case_name
"""


def test_a_page_is_styled_line_by_line() -> None:
    assert [plain(row) for row in render_markdown(PAGE, 60)] == snapshot(
        [
            "What is wrong",
            "The discount is applied after tax in total(), which is long",
            "enough to be wrapped here.",
            "",
            "- a short item",
            "- an item that is so long that it does not fit on one line",
            "  of this rather narrow screen",
            "  1. nested",
            "| a quote",
            "",
            "  def total():",
            "      return `not code`  # **not bold**",
            "| a | b |",
            "2 * 3 * 4 and snake_case_name",
        ]
    )


def test_marks_become_styles_where_there_is_colour() -> None:
    rows = render_markdown("**b** and `c` and *i*", 60)
    assert ansi(rows[0], colour=True) == snapshot("\x1b[1mb\x1b[0m and \x1b[36mc\x1b[0m and \x1b[3mi\x1b[0m")


def test_marks_stay_where_there_is_no_colour() -> None:
    rows = render_markdown("# h\n**b** and `c`", 60, colour=False)
    assert [ansi(row, colour=False) for row in rows] == snapshot(["# h", "**b** and `c`"])


@given(st.lists(st.integers(0, len(PAGE)), max_size=12))
def test_the_cuts_of_a_stream_do_not_show(cuts: list[int]) -> None:
    markdown = Markdown(60)
    edges = [0, *sorted(cuts), len(PAGE)]
    rows = [row for start, end in pairwise(edges) for row in markdown.feed(PAGE[start:end])]
    assert rows + markdown.close() == render_markdown(PAGE, 60)


def test_an_unfinished_line_is_there_before_its_end() -> None:
    markdown = Markdown(60)
    assert markdown.feed("finished\nunfin") == render_markdown("finished", 60)
    assert [plain(row) for row in markdown.unfinished()] == ["unfin"]


TABLE = """\
| name | what it is |
|---|:--|
| `a` | short |
| longer name | a text that is much too long to stand on one line of a narrow terminal |
"""


def test_a_table_is_aligned_and_its_long_cells_are_wrapped() -> None:
    rows = render_markdown(f"Before.\n{TABLE}After.", 49, colour=False)
    assert "\n".join(plain(row) for row in rows) == snapshot("""\
Before.
name         what it is
-----------  ------------------------------------
`a`          short
longer name  a text that is much too long to
             stand on one line of a narrow
             terminal
After.\
""")


def test_a_table_that_streams_can_be_seen_and_is_given_out_once() -> None:
    markdown = Markdown(79)
    assert [row for part in TABLE for row in markdown.feed(part)] == []
    assert "longer name" in "".join(plain(row) for row in markdown.unfinished())
    shown = [plain(row) for row in markdown.feed("\nAfter.\n") + markdown.close()]
    assert sum("longer name" in row for row in shown) == 1
    assert shown[-1] == "After."


def test_bars_that_are_no_table_stay_as_they_are() -> None:
    assert [plain(row) for row in render_markdown("| a | b\nnot", 79)] == ["| a | b", "not"]
