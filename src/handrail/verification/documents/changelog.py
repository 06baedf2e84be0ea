"""Changelogs: the entries of one in any style, what a change may do to them, and adding one.

Only the difference is judged: a file that was in disorder before is not an issue.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from handrail.protocol.values import Value
from handrail.tools.reports.issue import Issue
from handrail.verification.documents.markdown_lines import Line, newline_of, read_lines

NAME = re.compile(r"(?:changelog|changes|history|news|release[-_ ]?notes)(?:[-_.][\w.-]*)?", re.IGNORECASE)
ENDINGS = {".md", ".markdown", ".rst", ".txt", ""}
HASH = re.compile(rb" {0,3}(#{1,4})[ \t]+(.*?)[ \t]*#*[ \t]*")
UNDERLINE = re.compile(rb" {0,3}([-=~^+*#])\1{2,}[ \t]*")
DATE = re.compile(rb"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
VERSION = re.compile(rb"(?<![\w.-])v?\d+\.\d+(?:\.\d+)*(?![\d-])")
UNRELEASED = re.compile(rb"(?i)\bunreleased\b|\bupcoming\b|\bnext\b|\bdevelopment\b|\bmain\b")
MAX_BYTES = 5_000_000
MAX_ENTRIES = 5_000  # of a changelog that is restored entry by entry


class Entry(NamedTuple):
    heading: bytes
    """Without its markup."""
    line: int
    """From 1."""
    start: int
    """Offset of its heading."""
    level: int
    body: tuple[bytes, ...]
    """Lines with text in them, the heading's underline included."""

    @property
    def dates(self) -> list[tuple[int, int, int]]:
        return [(int(year), int(month), int(day)) for year, month, day in DATE.findall(self.heading)]

    @property
    def is_unreleased(self) -> bool:
        return bool(UNRELEASED.search(self.heading)) and not self.dates

    @property
    def has_version(self) -> bool:
        return bool(VERSION.search(DATE.sub(b"", self.heading)))


class Changelog(NamedTuple):
    preamble: tuple[bytes, ...]
    entries: tuple[Entry, ...]

    @property
    def is_newest_last(self) -> bool:
        dated = [each.dates[0] for each in self.entries if each.dates]
        if len(dated) > 1 and dated[0] != dated[-1]:
            return dated[0] < dated[-1]
        versions = [
            tuple(map(int, re.findall(rb"\d+", found[0])))
            for each in self.entries
            if (found := VERSION.search(each.heading))
        ]
        return len(versions) > 1 and versions[0] < versions[-1]

    @property
    def newest(self) -> Entry | None:
        """The entry that was added last, by the style of the file."""
        filled = [each for each in self.entries if each.body] or list(self.entries)
        if not filled:
            return None
        return filled[-1] if self.is_newest_last else filled[0]


def is_changelog(path: str) -> bool:
    name = PurePosixPath(path)
    return name.suffix.lower() in ENDINGS and bool(NAME.fullmatch(name.name.removesuffix(name.suffix)))


def read_changelog(data: bytes) -> Changelog:
    """The entries: headings with a date, a version or `Unreleased`, each with what follows it."""
    lines = read_lines(data[:MAX_BYTES])
    headings = list(_headings(lines))
    # Headings below the level of entries are parts of them.
    top = min((level for _, level, _ in headings), default=0)
    entries = [each for each in headings if each[1] == top]
    starts = [number for number, _, _ in entries]
    ends = [*starts[1:], len(lines)][: len(starts)]
    found = []
    for (number, level, heading), end in zip(entries, ends, strict=True):
        body = _filled(lines[number + 1 : end])
        found.append(Entry(heading, number + 1, lines[number].start, level, body))
    return Changelog(_filled(lines[: starts[0]] if starts else lines), tuple(found))


def _headings(lines: Sequence[Line]) -> Iterator[tuple[int, int, bytes]]:
    """Number, level and text of each line that begins an entry."""
    for number, line in enumerate(lines):
        if not line.is_text:
            continue
        hashes = HASH.fullmatch(line.text)
        below = lines[number + 1] if number + 1 < len(lines) else None
        if hashes:
            level, text = len(hashes[1]), hashes[2]
        elif below and below.is_text and line.text.strip() and UNDERLINE.fullmatch(below.text):
            level, text = 1 if below.text.lstrip().startswith(b"=") else 2, line.text.strip()
        else:
            continue
        if DATE.search(text) or VERSION.search(text) or UNRELEASED.search(text):
            yield number, level, text


def _filled(lines: Sequence[Line]) -> tuple[bytes, ...]:
    return tuple(text for line in lines if (text := line.text.rstrip()))


def check_changelog(path: str, old: bytes, new: bytes | None) -> tuple[Issue, ...]:
    """What a change did to a changelog that it may not: it may only add."""
    if new is None:
        return (_issue(path, 0, "the changelog was deleted"),)
    if len(new) > MAX_BYTES or len(old) > MAX_BYTES:
        return (
            ()
            if new.endswith(old) or new.startswith(old)
            else (_issue(path, 0, "text of the changelog was lost"),)
        )
    if new == old:
        return ()
    before, after = read_changelog(old), read_changelog(new)
    issues = []
    if not _is_part(before.preamble, after.preamble if before.entries else _filled(read_lines(new))):
        issues.append(_issue(path, 1, "text above the first entry was lost"))
    issues += _check_kept(path, before, after)
    if not issues:
        issues += _check_added(path, before, after)
    return tuple(issues[:20])


def _check_kept(path: str, before: Changelog, after: Changelog) -> Iterator[Issue]:
    rest = list(after.entries)
    for each in before.entries:
        place = next((number for number, other in enumerate(rest) if _keeps(each, other)), -1)
        if place >= 0:
            rest = rest[place + 1 :]
            continue
        title = each.heading.decode(errors="replace")[:80]
        same = [other for other in after.entries if other.heading == each.heading]
        if not same:
            yield _issue(path, 0, f"the entry `{title}` was removed or its heading was changed")
        elif any(_keeps(each, other) for other in same):
            yield _issue(path, same[0].line, f"the entry `{title}` was moved")
        else:
            yield _issue(path, same[0].line, f"text of the entry `{title}` was lost or changed")


def _keeps(old: Entry, new: Entry) -> bool:
    # A release gives the entry of what was unreleased its version and date.
    same = new.heading == old.heading or (old.is_unreleased and bool(new.dates))
    return same and new.level == old.level and _is_part(old.body, new.body)


def _is_part(old: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Whether all old lines are in the new ones, in order."""
    rest = iter(new)
    return all(line in rest for line in old)


def restored_changelog(path: str, old: bytes, new: bytes) -> bytes:
    """The changelog with all that a change took from it, and with what the change may add."""
    before, after = read_changelog(old), read_changelog(new)
    counts = len(before.entries), len(after.entries)
    if max(len(old), len(new)) > MAX_BYTES or not min(counts) or max(counts) > MAX_ENTRIES:
        return old
    kept: dict[Entry, Entry] = {}
    rest = list(after.entries)
    for each in before.entries:
        # One with its own heading, before one that a release could have made of it.
        same = [other for other in rest if other.heading == each.heading]
        same += [other for other in rest if other.heading != each.heading]
        if found := next((other for other in same if _keeps(each, other)), None):
            kept[each] = found
            rest.remove(found)
    lost = [each for each in before.entries if each not in kept]
    # What is left of a lost entry is no new one: it has its heading, or its text below another heading.
    added = [
        each
        for each in rest
        if not any(each.heading == other.heading or _is_part(each.body, other.body) for other in lost)
    ]
    head = new[: after.entries[0].start]
    if not _is_part(before.preamble, after.preamble):
        head = old[: before.entries[0].start]
    entries = [
        _entry_text(new, after, kept[each]) if each in kept else _entry_text(old, before, each)
        for each in before.entries
    ]
    place = len(entries)
    if not before.is_newest_last:
        place = next((n for n, each in enumerate(before.entries) if not each.is_unreleased), place)
    entries[place:place] = [_entry_text(new, after, each) for each in added]
    whole = (head + b"".join(entries)).rstrip() + old[len(old.rstrip()) :]
    return old if check_changelog(path, old, whole) else whole


def _entry_text(data: bytes, changelog: Changelog, entry: Entry) -> bytes:
    """Its bytes up to the next entry, with an empty line at the end."""
    later = [each.start for each in changelog.entries if each.start > entry.start]
    text = data[entry.start : min(later, default=len(data))]
    end = newline_of(data)
    return text if later else text.rstrip() + end * 2


def _check_added(path: str, before: Changelog, after: Changelog) -> Iterator[Issue]:
    known = [each.heading for each in before.entries]
    added = []
    for number, each in enumerate(after.entries):
        if each.heading in known:
            known.remove(each.heading)
        else:
            added.append((number, each))
    for number, each in added:
        if any(not _is_date(*parts) for parts in each.dates):
            title = each.heading.decode(errors="replace")[:80]
            yield _issue(path, each.line, f"the date in `{title}` does not exist")
        elif each.dates and before.entries and not each.has_version:
            yield from _check_order(path, before, after, number)


def _check_order(path: str, before: Changelog, after: Changelog, number: int) -> Iterator[Issue]:
    """An issue if an added entry is not where the file has its newest."""
    each = after.entries[number]
    older = after.entries[:number] if before.is_newest_last else after.entries[number + 1 :]
    newer = after.entries[number + 1 :] if before.is_newest_last else after.entries[:number]
    wrong = any(max(other.dates) > each.dates[0] for other in older[:1] if other.dates)
    wrong = wrong or any(min(other.dates) < each.dates[0] for other in newer if other.dates)
    if wrong:
        title = each.heading.decode(errors="replace")[:80]
        order = "last" if before.is_newest_last else "first"
        yield _issue(
            path, each.line, f"the new entry `{title}` is out of order: this file has the newest {order}"
        )


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _issue(path: str, line: int, message: str) -> Issue:
    return Issue(
        "docs",
        "high",
        message,
        path,
        line,
        rule="changelog",
        fix="only add to a changelog; `handrail verify --only docs --fix` proposes to restore it",
    )


class NewEntry(Value):
    day: date
    title: str
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    text: str = ""


class EntryRefused(ValueError):
    """An entry cannot be added to this file without breaking it; the message says why."""


def add_entry(path: str, old: bytes | None, entry: NewEntry) -> bytes:
    """The changelog with one more entry, where the file has its newest; raises EntryRefused."""
    data = old or b""
    newline = newline_of(data)
    log = read_changelog(data)
    is_rst = path.endswith(".rst")
    level = log.entries[0].level if log.entries else 2
    block = newline.join(_entry_lines(entry, level, is_rst=is_rst))
    if not data.strip():
        title = [b"Changelog", b"========="] if is_rst else [b"# Changelog"]
        return data + newline.join([*title, b"", block, b""])
    released = [each for each in log.entries if not each.is_unreleased]
    if log.is_newest_last or not log.entries:
        gap = b"" if data.endswith((b"\n", b"\r")) else newline
        new = data + gap + newline + block + newline
    elif released:
        new = data[: released[0].start] + block + newline + newline + data[released[0].start :]
    else:
        gap = b"" if data.endswith((b"\n", b"\r")) else newline
        new = data + gap + newline + block + newline
    heading = _one_line(f"[{entry.day.isoformat()}] - {entry.title}").encode()
    headings = [each.heading for each in read_changelog(new).entries]
    if (
        check_changelog(path, data, new)
        or headings.count(heading) != [each.heading for each in log.entries].count(heading) + 1
    ):
        raise EntryRefused(
            f"An entry cannot be added to {path} by code. Close its open code block or comment first."
        )
    return new


def _entry_lines(entry: NewEntry, level: int, *, is_rst: bool) -> list[bytes]:
    heading = _one_line(f"[{entry.day.isoformat()}] - {entry.title}")
    mark = "=" if level == 1 else "-"
    lines = [heading, mark * len(heading)] if is_rst else [f"{'#' * level} {heading}"]
    lines += (
        ["", *(f"- {plain}" for line in entry.text.splitlines() if (plain := _plain(line)))]
        if entry.text.strip()
        else [""]
    )
    for word, paths in (("Created", entry.created), ("Changed", entry.changed), ("Deleted", entry.deleted)):
        if paths:
            lines.append(f"- {word}: " + ", ".join(f"`{_one_line(path).replace('`', '')}`" for path in paths))
    return [line.encode(errors="replace") for line in lines]


def _one_line(text: str) -> str:
    return (
        " ".join("".join(each if each.isprintable() else " " for each in text).split()).rstrip("#").rstrip()
    )


def _plain(line: str) -> str:
    """A line of a description without markup that would begin something else."""
    text = re.sub(r"^(?:[-*+>#=~\s]|`{3,}|\d+[.)]\s)+", "", _one_line(line))
    return text.replace("<!--", "&lt;!--").replace("```", "").replace("~~~", "")
