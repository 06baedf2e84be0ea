"""Diffs as tables."""

from handrail.interfaces.web.conversation.calls import split_files
from handrail.interfaces.web.diff import counts, location, parse, render_diff

CHANGE = """\
--- a/src/cart.py
+++ b/src/cart.py
@@ -50,3 +50,3 @@
 def total(items, tax, discount):
-    return (subtotal + tax) * (1 - discount)
+    return subtotal * (1 - discount) + tax
 end
"""


def test_words_that_differ_are_marked_in_both_lines() -> None:
    made = render_diff(CHANGE, "src/cart.py")
    unified = made.partition("view split")[0]
    assert "<mark>(</mark>" in unified
    assert "<mark> + tax</mark>" in unified
    assert '<span class="hl-k">return</span>' in unified
    assert made.count("view unified") == made.count("view split") == 1


def test_lines_are_numbered_on_their_own_side() -> None:
    rows = [(row.kind, row.old, row.new) for row in parse(CHANGE)]
    assert rows == [("same", 50, 50), ("del", 51, 0), ("add", 0, 51), ("same", 52, 52)]
    assert counts(CHANGE) == (1, 1)
    assert location("src/cart.py", CHANGE) == "src/cart.py:51"


def test_text_in_a_diff_is_escaped_and_invisible_characters_are_shown() -> None:
    made = render_diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-<script>alert(1)</script>\n+\u202eevil\n", "x")
    assert "<script" not in made
    assert "&lt;U+202E&gt;evil" in made


def test_lines_that_look_like_headers_stay_lines() -> None:
    rows = parse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n same\n")
    assert [(row.kind, row.text) for row in rows] == [("del", "-- a/y"), ("add", "++ b/y"), ("same", "same")]


def test_files_of_one_diff_are_told_apart() -> None:
    new = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    assert [path for path, _ in split_files(f"{CHANGE}\n{new}")] == ["src/cart.py", "new.py"]


def test_long_diffs_are_folded() -> None:
    lines = "".join(f"+line {number}\n" for number in range(500))
    made = render_diff(f"--- /dev/null\n+++ b/x\n@@ -0,0 +1,500 @@\n{lines}", "x")
    assert "420 more lines</summary>" in made
