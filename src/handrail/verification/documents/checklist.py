"""Checklists in Markdown: read the items, tick one without changing another byte, see what was lost."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from handrail.protocol.values import ChecklistItem, Value
from handrail.tools.reports.issue import Issue
from handrail.verification.documents.markdown_lines import Line, read_lines

State = Literal["open", "done", "in_progress", "skipped"]
MARKS: dict[bytes, State] = {b" ": "open", b"x": "done", b"X": "done", b"~": "in_progress", b"-": "skipped"}
ITEM = re.compile(rb"((?:[ \t]|>)*)([-*+]|\d{1,9}[.)])([ \t]+)\[([ xX~-])\](?:[ \t]+(.*)|[ \t]*)")
BULLET = re.compile(rb"((?:[ \t]|>)*)([-*+]|\d{1,9}[.)])[ \t]+(?!\[[ xX~-]\](?:[ \t]|$))(.*)")
HEADING = re.compile(rb" {0,3}#{1,6}[ \t]+(.*)")
ACCEPTANCE = re.compile(
    r"(?:[*_]{0,2})acceptance(?: criteria)?(?:[*_]{0,2}):(?:[*_]{0,2})\s*(.*)", re.IGNORECASE
)
PRIORITY = re.compile(
    r"(?:^|\s)[\[(]?(?:priority:\s*(\w+)|(P[0-4])|!(high|medium|low|critical|urgent))[\])]?(?=\s|$|[,.;:])",
    re.IGNORECASE,
)
CODE_INDENT = 4
MAX_BYTES = 5_000_000


class Item(Value):
    number: int
    """From 1, in the order of the file."""
    line: int
    text: str
    state: State
    mark_at: int
    """Offset of the character between the brackets."""
    phase: str = ""
    """The heading above it."""
    level: int = 0
    parent: int = 0
    """Number of the item that it belongs to; 0: none."""
    priority: str = ""
    acceptance: tuple[str, ...] = ()
    description: tuple[str, ...] = ()


class ChecklistProblem(ValueError):
    """The checklist cannot be read or ticked; the message says why and what to do."""


class _Open(NamedTuple):
    number: int
    """0: a bullet without a box."""
    content: int
    """The column in which its text begins: what is at least as far in belongs to it."""


def read_checklist(data: bytes) -> tuple[Item, ...]:
    """The items of a checklist; raises ChecklistProblem if it is too large."""
    if len(data) > MAX_BYTES:
        raise ChecklistProblem(
            f"The checklist has {len(data):,} bytes; the limit is {MAX_BYTES:,}. Split it."
        )
    reader = _Reader()
    for number, line in enumerate(read_lines(data), start=1):
        reader.read(line, number)
    return tuple(each.item() for each in reader.items)


class _Draft(Struct):
    """An item while the lines below it are read."""

    fields: Item
    acceptance: list[str]
    description: list[str]
    priority: str

    def item(self) -> Item:
        found = {"acceptance": tuple(self.acceptance), "description": tuple(self.description)}
        return replace(self.fields, **found, priority=self.priority)


class _Reader:
    def __init__(self) -> None:
        self.items: list[_Draft] = []
        self._open: list[_Open] = []
        self._phase = ""

    def read(self, line: Line, number: int) -> None:
        if not line.is_text:
            if line.text[:1] not in (b"", b" ", b"\t", b">"):
                self._open = []  # a block at the margin ends a list
            return
        if heading := HEADING.fullmatch(line.text):
            self._phase, self._open = _decoded(heading[1].rstrip(b" \t").rstrip(b"#")), []
        elif item := ITEM.fullmatch(line.text):
            self._item(line, item, number)
        elif bullet := BULLET.fullmatch(line.text):
            self._bullet(bullet)
        elif line.text.strip():
            self._text(line.text)

    def _close(self, column: int) -> bool:
        """End what a line at this column does not belong to; whether the line is a block of code."""
        while self._open and column < self._open[-1].content:
            self._open.pop()
        return column - (self._open[-1].content if self._open else 0) >= CODE_INDENT

    def _item(self, line: Line, match: re.Match[bytes], number: int) -> None:
        column = _width(match[1])
        if self._close(column):
            return
        parents = [each.number for each in self._open if each.number]
        text = _decoded(match[5] or b"")
        found = PRIORITY.search(text)
        item = Item(
            number=len(self.items) + 1,
            line=number,
            text=text,
            state=MARKS[match[4]],
            mark_at=line.start + match.start(4),
            phase=self._phase,
            level=len(parents),
            parent=parents[-1] if parents else 0,
        )
        priority = next((each for each in found.groups() if each), "") if found else ""
        self.items.append(_Draft(item, [], [], priority))
        self._open.append(_Open(len(self.items), _width(line.text[: match.start(3)]) + _gap(match)))

    def _bullet(self, match: re.Match[bytes]) -> None:
        column = _width(match[1])
        if self._close(column):
            return
        owners = [each.number for each in self._open if each.number]
        if owners:
            self._describe(owners[-1], _decoded(match[3]))
        self._open.append(_Open(0, _width(match[1]) + len(match[2]) + 1))

    def _text(self, text: bytes) -> None:
        indent = text[: len(text) - len(text.lstrip(b" \t>"))]
        if not _width(indent):  # a line at the margin is not part of an item
            self._open = []
        self._close(_width(indent))
        owners = [each.number for each in self._open if each.number]
        if owners:
            self._describe(owners[-1], _decoded(text.strip()))

    def _describe(self, number: int, text: str) -> None:
        item = self.items[number - 1]
        if found := ACCEPTANCE.fullmatch(text):
            item.acceptance.append(found[1])
        else:
            item.description.append(text)
        priority = PRIORITY.search(text)
        if priority and not item.priority and text.lower().startswith("priority"):
            item.priority = next(each for each in priority.groups() if each)


def _gap(match: re.Match[bytes]) -> int:
    width = _width(match[3])
    return width if width <= CODE_INDENT else 1


def _width(indent: bytes) -> int:
    """The columns of an indentation; a tab goes to the next multiple of four."""
    column = 0
    for each in indent:
        column += CODE_INDENT - column % CODE_INDENT if each == 0x09 else 1
    return column


def _decoded(text: bytes) -> str:
    return text.strip().decode(errors="replace")


def find_item(items: Sequence[Item], number: int, text: str, phase: str = "", parent: str = "") -> Item:
    """The item of this text, also where the file has changed since; raises ChecklistProblem.

    Heading and parent decide between items of the same text, then the number.
    """
    named = {each.number: each.text for each in items}
    found = [each for each in items if each.text == text]
    near = [each for each in found if (each.phase, named.get(each.parent, "")) == (phase, parent)]
    for same in (near, found):
        exact = [each for each in same if each.number == number]
        if exact or len(same) == 1:
            return (exact or same)[0]
    why = "no longer in the checklist" if not found else f"in the checklist {len(found)} times"
    raise ChecklistProblem(f"The item `{text[:80]}` is {why}. Read the checklist again.")


def _ticked(data: bytes, item: Item) -> bytes:
    return data[: item.mark_at] + b"x" + data[item.mark_at + 1 :]


def complete_item(data: bytes, wanted: ChecklistItem) -> bytes:
    """The checklist with this item ticked, and each item above it whose sub-items are all settled now.

    No other byte is changed. Raises ChecklistProblem.
    """
    items = {each.number: each for each in read_checklist(data)}
    found = find_item(tuple(items.values()), wanted.number, wanted.text, wanted.phase, wanted.part_of)
    data = _ticked(data, found)
    done = {found.number}
    while above := items.get(found.parent):
        below = [each for each in items.values() if each.parent == above.number]
        settled = all(each.number in done or each.state in ("done", "skipped") for each in below)
        if above.state != "open" or not settled:
            break
        data, found = _ticked(data, above), above
        done.add(above.number)
    return data


def buildable(items: Sequence[Item], below: int = 0) -> list[Item]:
    """The open items that are worked on one by one: those without open sub-items, in the order of the file.

    `below`: only this item, or what is open below it.
    """
    named = {each.number: each for each in items}
    parents = {each.parent for each in items if each.state == "open"}

    def is_below(item: Item | None) -> bool:
        while item and item.number != below:
            item = named.get(item.parent)
        return item is not None

    leaves = [each for each in items if each.state == "open" and each.number not in parents]
    return [each for each in leaves if not below or is_below(each)]


class PhaseProgress(Value):
    phase: str
    done: int
    of: int
    """Items that were not skipped."""


def progress(items: Sequence[Item]) -> tuple[PhaseProgress, ...]:
    """How far each phase is, in the order of the file."""
    phases = dict.fromkeys(each.phase for each in items)
    found = []
    for phase in phases:
        wanted = [each for each in items if each.phase == phase and each.state != "skipped"]
        found.append(PhaseProgress(phase, sum(each.state == "done" for each in wanted), len(wanted)))
    return tuple(found)


def check_checklist(path: str, old: bytes, new: bytes | None) -> tuple[Issue, ...]:
    """What a change did to a checklist that it may not: lose an item, or a tick."""
    if new == old:
        return ()
    if new is None:
        return (_issue(path, 0, "the checklist was deleted"),)
    try:
        before, after = read_checklist(old), read_checklist(new)
    except ChecklistProblem as problem:
        return (_issue(path, 0, str(problem)),)
    issues = []
    rest: Sequence[Item] = after
    for each in before:
        # The earliest item that fits leaves the most for those that follow.
        place = next((at for at, other in enumerate(rest) if _keeps(each, other)), -1)
        if place >= 0:
            rest = rest[place + 1 :]
            continue
        same = [other for other in rest if other.text == each.text]
        if same:
            issues.append(_issue(path, same[0].line, f"the item `{each.text[:80]}` is no longer ticked"))
        else:
            issues.append(_issue(path, 0, f"the item `{each.text[:80]}` was lost, moved or changed"))
        if len(issues) == 20:
            break
    return tuple(issues)


def _keeps(old: Item, new: Item) -> bool:
    return new.text == old.text and (old.state != "done" or new.state == "done")


def _issue(path: str, line: int, message: str) -> Issue:
    return Issue(
        "docs", "high", message, path, line, rule="checklist", fix="Restore the checklist; only tick items."
    )
