"""What asks for approval is there to be seen, all of it."""

import re

import pytest
from inline_snapshot import snapshot

from handrail.changes.diff import diff
from handrail.interfaces.cli.render.approvals import (
    approval_lines,
    approval_preview,
    hidden_lines,
    keys_line,
    missing_lines,
)
from handrail.interfaces.cli.render.styles import columns, plain
from handrail.protocol.events import ApprovalAsked
from tests.interfaces.cli.shown import asked

pytestmark = pytest.mark.promise("TERM-11")


def text_of(event: ApprovalAsked, width: int = 79) -> str:
    return "\n".join(plain(row) for row in approval_lines(event, width))


def command(text: str) -> ApprovalAsked:
    return asked("run", " ".join(text.split())[:150], text)


@pytest.mark.parametrize("width", [79, 49, 20])
def test_a_long_command_is_broken_and_not_cut(width: int) -> None:
    text = f"echo {'a' * 120} && touch EVIL"
    shown = text_of(command(text), width)
    assert re.sub(r"\n +↪ ", "", shown).split(maxsplit=1)[1] == text
    assert max(columns(row) for row in shown.splitlines()) <= width


def test_a_long_command_looks_like_one() -> None:
    assert text_of(command(f"echo {'a' * 70} && touch EVIL\nsecond line")) == snapshot("""\
  run       echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
            ↪ aaaaaaaa && touch EVIL
            second line\
""")


def test_blanks_in_an_edit_hide_nothing() -> None:
    change = diff("a.py", "x = 1\n", "x = 1" + " " * 90 + "; os.system('evil')\n")
    shown = text_of(asked("edit", "a.py", change.text))
    assert "·×90; os.system('evil')" in shown  # noqa: RUF001


@pytest.mark.parametrize("character", ["\u200b", "\u00a0", "\u2028", "\u00ad", "\U000e0041"])
def test_what_cannot_be_seen_is_spelled_out(character: str) -> None:
    assert f"a<U+{ord(character):04X}>b" in text_of(command(f"a{character}b"))


@pytest.mark.parametrize(
    "text",
    [
        "touch EVIL\n@@ -1 +1 @@\n-one\n+two",
        "--- a.py\n+++ a.py\ntouch EVIL\n@@ -1 +1 @@\n-one\n+two",
        "--- x; touch EVIL\n+++ a.py\n@@ -1 +1 @@\n-one\n+two",
        "--- a.py\n+++ a.py\n@@ -1 +1 @@; touch EVIL\n-one\n+two",
        "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-one\n+two\ntouch EVIL",
    ],
)
def test_a_command_that_looks_like_a_diff_hides_nothing(text: str) -> None:
    assert "touch EVIL" in text_of(asked("run", "a.py", text))


def test_hidden_lines_are_counted_exactly() -> None:
    change = diff("new.py", None, "".join(f"line {number}\n" for number in range(801)))
    event = asked("write", "new.py", change.text)
    rows = [plain(row) for row in approval_preview(event, 79)]
    assert len(rows) == 61
    assert rows[20] == "    … 742 lines are hidden here; v shows all of it"
    assert hidden_lines(event, 79) == 742
    assert missing_lines(event) == 0
    assert "line 400" in text_of(event)
    assert plain(keys_line(79, more=True)[0]).startswith("  allow?   v view all   y yes")


def test_lines_that_the_preview_leaves_out_are_told_and_counted() -> None:
    change = diff("new.py", None, "x\n" * 3000)
    event = asked("write", "new.py", change.text)
    assert missing_lines(event) == 1003
    assert text_of(event).endswith("    1003 more lines of the diff are not shown")


def test_an_approval_waits_on_a_line_that_fits() -> None:
    assert [plain(row) for row in keys_line(79, more=False)] == snapshot(
        ["  allow?   y yes   n no   a always in this session   ? why am I asked"]
    )


def test_an_entry_that_would_be_kept_is_named() -> None:
    rows = " ".join(plain(row).strip() for row in keys_line(79, more=False, entry="make build"))
    assert "w write `make build` to your allowed commands" in rows
