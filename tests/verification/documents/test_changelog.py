import random
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.verification.consistency.source_tree import TouchedFile
from handrail.verification.documents.changelog import (
    EntryRefused,
    NewEntry,
    add_entry,
    check_changelog,
    is_changelog,
    read_changelog,
)
from handrail.verification.documents.integrity import bytes_to_restore, check_documents

KEEP = b"""# Changelog

All notable changes.

## [Unreleased]

### Added
- Something `new()`

## [1.1.0] - 2026-02-01

### Fixed
- A bug

## [1.0.0] - 2026-01-01

- First
"""
DATED = (
    b"# Changes\r\n\r\n## [2026-02-01] - Second\r\n\r\n- b\r\n- c\r\n\r\n## [2026-01-01] - First\r\n\r\n- a"
)
OLDEST_FIRST = b"""\
History
=======

0.1 (2020-01-01)
----------------

* a

0.2 (2021-01-01)
----------------

* b
"""
NEWS = b"Release 3.2\n\n* no headings at all\n* only text\n"
TODAY = date(2026, 3, 1)
ENTRY = NewEntry(
    TODAY,
    "Add retries",
    ("src/retry.py",),
    ("src/http.py", "README.md"),
    (),
    "Retries three times\n# with care\n```\n<!-- x",
)


def problems(old: bytes, new: bytes | None) -> list[str]:
    return [issue.message for issue in check_changelog("CHANGELOG.md", old, new)]


words = (
    st.text(st.characters(categories=["L", "N"], include_characters=" -`*é"), min_size=1, max_size=20)
    .map(str.strip)
    .filter(bool)
)


@st.composite
def changelogs(draw: st.DrawFn) -> bytes:
    """A changelog with two to eight dated entries, newest first, in one of several styles."""
    heading = draw(
        st.sampled_from(
            ["## [{0}] - {1}", "## {1} ({0})", "# 1.{2} - {0}", "## v1.{2} {0}", "{0} {1}\n-----------"]
        )
    )
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    day = date(2026, 1, 1)
    parts = ["# Changelog", "", "Notes."] if not heading.startswith("# ") else ["Notes."]
    for number in range(draw(st.integers(2, 8)), 0, -1):
        title = draw(words)
        parts += ["", *heading.format(day + timedelta(days=number), title, number).split("\n"), ""]
        parts += [f"- {number} {line}" for line in draw(st.lists(words, min_size=1, max_size=5))]
    return newline.join(parts).encode() + (newline.encode() if draw(st.booleans()) else b"")


def attack(data: bytes, how: str, pick: random.Random) -> bytes:
    """The changelog with one of its entries deleted, moved, shortened or dated anew."""
    log = read_changelog(data)
    number = pick.randrange(len(log.entries))
    starts = [each.start for each in log.entries] + [len(data)]
    start, end = starts[number], starts[number + 1]
    block = data[start:end]
    other = pick.choice([each for each in range(len(log.entries)) if each != number])
    match how:
        case "delete":
            return data[:start] + data[end:]
        case "reorder":
            blocks = [
                data[starts[each] : starts[each + 1]].rstrip() + b"\n\n" for each in range(len(log.entries))
            ]
            blocks[number], blocks[other] = blocks[other], blocks[number]
            return data[: starts[0]] + b"".join(blocks)
        case "shorten":
            lines = block.splitlines(keepends=True)
            text = [each for each, line in enumerate(lines) if line.strip().startswith(b"- ")]
            del lines[pick.choice(text)]
            return data[:start] + b"".join(lines) + data[end:]
        case "date":
            return data[:start] + block.replace(b"2026-", b"2025-", 1) + data[end:]
        case "cut":
            return data[: pick.randrange(starts[1], len(data.rstrip()))]
        case "hide":
            return data[:start] + b"<!--\n" + data[start:]
        case "fence":
            return data[:start] + b"```\n" + data[start:]
        case "split":
            at = block.index(b"\n- ") + 1
            return data[: start + at] + b"\n## [2026-12-01] - Other\n\n" + data[start + at :]
        case _:
            return data[:start] + data[start:end].replace(b"\n- ", b"\n- x", 1) + data[end:]


ATTACKS = ["delete", "reorder", "shorten", "date", "cut", "hide", "fence", "edit"]


@pytest.mark.promise("DOCS-1")
@given(changelogs(), st.sampled_from(ATTACKS), st.randoms(use_true_random=False), st.booleans())
def test_attacked_changelog_is_restored(data: bytes, how: str, pick: random.Random, also_adds: bool) -> None:
    attacked = attack(data, how, pick)
    if also_adds and how not in ("hide", "fence"):
        attacked = add_entry("CHANGELOG.md", attacked, ENTRY)
    checklist = b"- [ ] a\n"
    old = {"CHANGELOG.md": data, "plan.md": checklist}
    restored = bytes_to_restore(old, {"CHANGELOG.md": attacked, "plan.md": b"- [x] a\n"}, {"plan.md"})
    assert restored == old


@pytest.mark.promise("DOCS-1")
@given(changelogs())
def test_entry_written_by_code_is_sound_and_changes_nothing_else(data: bytes) -> None:
    new = add_entry("CHANGELOG.md", data, ENTRY)
    assert check_changelog("CHANGELOG.md", data, new) == ()
    newest = read_changelog(new).newest
    assert newest
    assert newest.heading == b"[2026-03-01] - Add retries"
    start = newest.start
    length = len(new) - len(data)
    assert new[:start] + new[start + length :] == data


@pytest.mark.promise("DOCS-2")
@pytest.mark.parametrize(
    "data", [KEEP, DATED, OLDEST_FIRST, NEWS, b"", b"\xef\xbb\xbf# Log\n", b"\xff\xfe no text \x00"]
)
def test_old_or_foreign_changelog_is_judged_only_by_the_difference(data: bytes) -> None:
    assert problems(data, data) == []
    assert problems(data, data + b"\nmore text\n") == []
    if data.strip() and b"\x00" not in data:
        assert problems(data, add_entry("CHANGELOG.md", data, ENTRY)) == []


def test_entry_goes_where_the_file_has_its_newest() -> None:
    new = add_entry("CHANGELOG.md", KEEP, ENTRY).decode()
    block = (
        "## [2026-03-01] - Add retries\n\n- Retries three times\n- with care\n- &lt;!-- x\n"
        "- Created: `src/retry.py`\n- Changed: `src/http.py`, `README.md`\n\n"
    )
    assert new == KEEP.decode().replace("## [1.1.0]", block + "## [1.1.0]")
    assert add_entry("CHANGELOG.md", DATED, ENTRY).startswith(
        b"# Changes\r\n\r\n## [2026-03-01] - Add retries\r\n\r\n-"
    )
    last = add_entry("HISTORY.rst", OLDEST_FIRST, ENTRY)
    assert last.startswith(OLDEST_FIRST)
    assert b"\n[2026-03-01] - Add retries\n--------------------------\n" in last
    assert add_entry("CHANGELOG.md", None, ENTRY).startswith(
        b"# Changelog\n\n## [2026-03-01] - Add retries\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            DATED,
            DATED.replace(b"## [2026-02-01]", b"## [2026-02-30] - New\r\n\r\n- x\r\n\r\n## [2026-02-01]"),
            "does not exist",
        ),
        (
            DATED,
            DATED.replace(b"## [2026-01-01]", b"## [2026-03-01] - New\r\n\r\n- x\r\n\r\n## [2026-01-01]"),
            "out of order",
        ),
        (
            DATED,
            DATED.replace(b"## [2026-02-01]", b"## [2026-01-15] - New\r\n\r\n- x\r\n\r\n## [2026-02-01]"),
            "out of order",
        ),
        (DATED, DATED + b"\r\n\r\n## [2026-03-01] - New\r\n\r\n- x", "out of order"),
        (DATED, DATED.replace(b"- b\r\n", b"- b\r\n\r\n## [2026-02-01] - Other\r\n\r\n"), "lost or changed"),
        (KEEP, KEEP.replace(b"All notable", b"Some notable"), "above the first entry"),
        (KEEP, None, "deleted"),
        (NEWS, b"", "above the first entry"),
    ],
)
def test_violation_is_named(old: bytes, new: bytes | None, words: str) -> None:
    assert any(words in each for each in problems(old, new)), problems(old, new)


@pytest.mark.parametrize(
    "new",
    [
        KEEP.replace(b"- Something", b"- One more\n- Something"),
        KEEP.replace(b"## [Unreleased]", b"## [1.2.0] - 2026-03-01"),
        KEEP.replace(b"## [Unreleased]", b"## [Unreleased]\n\n## [1.2.0] - 2026-03-01"),
        KEEP.replace(b"\n", b"\r\n"),
        KEEP.replace(b"\n\n### Fixed", b"\n### Fixed") + b"\n\n",
    ],
)
def test_additions_releases_and_blank_lines_are_no_violation(new: bytes) -> None:
    assert problems(KEEP, new) == []


def test_open_code_block_or_comment_refuses_an_entry() -> None:
    with pytest.raises(EntryRefused, match="Close its open code block"):
        add_entry("CHANGELOG.md", b"# Log\n\n```\nnever closed\n", ENTRY)


def test_documents_of_a_tree_are_checked_by_their_old_content(tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_bytes(KEEP.replace(b"- First\n", b""))
    (tmp_path / "plan.md").write_bytes(b"- [ ] a\n")
    touched = [
        TouchedFile("CHANGELOG.md", KEEP),
        TouchedFile("plan.md", b"- [x] a\n"),
        TouchedFile("README.md", b"- [x] a\n"),
    ]
    found = check_documents(tmp_path, touched, {"plan.md"})
    assert [(each.kind, each.path) for each in found] == [("docs", "CHANGELOG.md"), ("docs", "plan.md")]
    assert check_documents(tmp_path, [TouchedFile("CHANGELOG.md")]) == ()


def test_changelogs_are_known_by_their_names() -> None:
    known = [
        "CHANGELOG.md",
        "docs/changes.rst",
        "HISTORY",
        "NEWS.txt",
        "CHANGELOG-2.x.md",
        "Release_Notes.md",
    ]
    assert [is_changelog(each) for each in known] == [True, True, True, True, True, True]
    assert not any(
        map(is_changelog, ["changes.py", "newsletter.md", "src/changes/apply.py", "release.sh", "changed.md"])
    )
