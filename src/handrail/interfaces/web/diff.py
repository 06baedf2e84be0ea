"""A unified diff as tables, unified and side by side: word marks, syntax colours, line numbers."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal, NamedTuple

from handrail.interfaces.cli.render.styles import clean, count_of
from handrail.interfaces.web.highlight import Pieces, code_lines, piece
from handrail.interfaces.web.html import Html, h, join

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
OMITTED = re.compile(r"\[\d+ more lines of the diff are not shown\]")
WORDS = re.compile(r"\w+|\s+|[^\w\s]")
SIMILAR = 0.35
"""Lines with less in common are marked as a whole."""
MAX_WORDS = 400
MAX_ROWS = 4_000
SPLIT_ROWS = 1_200
"""Longer diffs are only shown unified."""
FOLDED_ROWS = 120
SHOWN_ROWS = 80

Kind = Literal["same", "del", "add", "gap", "note", "file"]
Marks = list[tuple[int, int]]


class Row(NamedTuple):
    kind: Kind
    text: str
    old: int = 0
    new: int = 0


class Counts(NamedTuple):
    added: int
    removed: int


def is_diff(text: str) -> bool:
    return any(HUNK.match(line) for line in text.splitlines())


def counts(text: str) -> Counts:
    rows = parse(text)
    return Counts(sum(row.kind == "add" for row in rows), sum(row.kind == "del" for row in rows))


def location(path: str, text: str) -> str:
    """`path:line` of the first line that differs, as editors and terminals take it."""
    line = next((row.new or row.old for row in parse(text) if row.kind in ("add", "del")), 0)
    return f"{path}:{line}" if line else path


def parse(text: str) -> list[Row]:
    """Rows of all hunks; further files, gaps and remarks are rows of their own."""
    rows: list[Row] = []
    old = new = old_left = new_left = 0
    for line in text.split("\n"):
        if hunk := HUNK.match(line):
            if any(row.kind in ("same", "add", "del") for row in rows[-1:]):
                rows.append(Row("gap", line.rpartition("@@")[2].strip()))
            old, old_left = int(hunk[1]), int(hunk[2] or 1)
            new, new_left = int(hunk[3]), int(hunk[4] or 1)
        elif OMITTED.fullmatch(line):
            rows.append(Row("note", line.strip("[]")))
        elif line.startswith("\\"):
            rows.append(Row("note", line[2:].lower()))
        elif old_left <= 0 and new_left <= 0:
            if line.startswith("+++ ") and rows:
                rows.append(Row("file", line[4:].removeprefix("b/")))
        elif line.startswith("-"):
            rows.append(Row("del", line[1:], old=old))
            old, old_left = old + 1, old_left - 1
        elif line.startswith("+"):
            rows.append(Row("add", line[1:], new=new))
            new, new_left = new + 1, new_left - 1
        else:
            rows.append(Row("same", line[1:], old, new))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
    return rows


def render_diff(text: str, path: str = "", *, fold: bool = True) -> Html:
    """Both views in one box; the style sheet shows the one that there is room for or the user chose."""
    found = parse(text)
    rows, more = found[:MAX_ROWS], len(found) - MAX_ROWS
    lines, marks = _coloured(rows, path), _word_marks(rows)
    unified = [_unified_row(row, lines[at], marks.get(at, [])) for at, row in enumerate(rows)]
    label = f"changes of {path}" if path else "changes"
    views = [_table(unified, "unified", label, fold=fold)]
    if len(rows) <= SPLIT_ROWS:
        views.append(
            _table(list(_split_rows(rows, lines, marks)), "split", f"{label}, side by side", fold=fold)
        )
    note = h("p", f"{count_of(more, 'more line')} not shown", class_="soft") if more > 0 else None
    return h("div", *views, note, class_=f"diff{' both' if len(views) > 1 else ''}")


def _table(rows: Sequence[Html], view: str, label: str, *, fold: bool) -> Html:
    shown, hidden = (rows[:SHOWN_ROWS], rows[SHOWN_ROWS:]) if fold and len(rows) > FOLDED_ROWS else (rows, [])
    table = h("table", h("tbody", *shown), aria_label=label)
    rest = None
    if hidden:
        table_of_rest = h("table", h("tbody", *hidden), aria_label=f"rest of the {label}")
        rest = h("details", h("summary", f"{count_of(len(hidden), 'more line')}"), table_of_rest)
    return h("div", table, rest, class_=f"view {view}", tabindex="0", role="region", aria_label=label)


def _unified_row(row: Row, pieces: Pieces, marks: Marks) -> Html:
    if row.kind in ("gap", "note", "file"):
        return _wide_row(row, 3)
    number = row.new or row.old
    sign = {"del": "-", "add": "+"}.get(row.kind, " ")
    cells = (_number(number), h("td", sign, class_="sign"), _code(pieces, marks))
    return h("tr", *cells, class_=row.kind)


def _split_rows(rows: Sequence[Row], lines: Sequence[Pieces], marks: dict[int, Marks]) -> Iterator[Html]:
    def half(at: int | None) -> tuple[Html, Html]:
        if at is None:
            return h("td", class_="num"), h("td", class_="line none")
        row = rows[at]
        number = row.old if row.kind == "del" else row.new
        return _number(number, row.kind), _code(lines[at], marks.get(at, []), row.kind)

    for removed, added, same in _runs(rows):
        if same is None:
            for left, right in zip_longest(removed, added):
                yield h("tr", *half(left), *half(right))
        elif rows[same].kind == "same":
            code = _code(lines[same], [])
            yield h("tr", _number(rows[same].old), code, _number(rows[same].new), code, class_="same")
        else:
            yield _wide_row(rows[same], 4)


def _runs(rows: Sequence[Row]) -> Iterator[tuple[list[int], list[int], int | None]]:
    """Removed and added rows that belong together; and every other row by itself."""
    removed, added = list[int](), list[int]()
    for at, row in enumerate(rows):
        if row.kind == "del" and not added:
            removed.append(at)
        elif row.kind == "add":
            added.append(at)
        else:
            if removed or added:
                yield removed, added, None
                removed, added = [], []
            if row.kind == "del":
                removed.append(at)
            else:
                yield [], [], at
    if removed or added:
        yield removed, added, None


def _wide_row(row: Row, columns: int) -> Html:
    text = {"gap": f"… {row.text}".rstrip()}.get(row.kind, row.text)
    return h("tr", h("td", clean(text), colspan=columns), class_=row.kind)


def _number(number: int, kind: str = "") -> Html:
    return h("td", str(number) if number else "", class_=f"num {kind}".rstrip())


def _code(pieces: Pieces, marks: Marks, kind: str = "") -> Html:
    """The line with its colours; the marked parts are in `mark` elements."""
    parts, at, waiting = list[Html](), 0, list(marks)
    for class_, text in pieces:
        rest = text
        while rest:
            inside = bool(waiting) and waiting[0][0] <= at
            end = waiting[0][1] if inside else waiting[0][0] if waiting else at + len(rest)
            now, rest = rest[: end - at], rest[end - at :]
            at += len(now)
            shown = piece(class_, clean(now))
            parts.append(h("mark", shown) if inside else shown)
            if inside and at >= end:
                waiting.pop(0)
    return h("td", *parts, class_=f"line {kind}".rstrip())


def _coloured(rows: Sequence[Row], path: str) -> list[Pieces]:
    """The pieces of each row: both sides of the diff are read as code, each as a whole."""
    lines: list[Pieces] = [[("", row.text)] for row in rows]
    for kinds in (("same", "del"), ("same", "add")):
        at = [number for number, row in enumerate(rows) if row.kind in kinds]
        if at:
            found = code_lines("\n".join(rows[number].text for number in at), path=path)
            for number, pieces in zip(at, found, strict=True):
                lines[number] = pieces
    return lines


def _word_marks(rows: Sequence[Row]) -> dict[int, Marks]:
    marks: dict[int, Marks] = {}
    for removed, added, _ in _runs(rows):
        for old, new in zip(removed, added, strict=False):
            before, after = WORDS.findall(rows[old].text), WORDS.findall(rows[new].text)
            if max(len(before), len(after)) > MAX_WORDS:
                continue
            matcher = SequenceMatcher(None, before, after, autojunk=False)
            if matcher.ratio() < SIMILAR:
                continue
            codes = matcher.get_opcodes()
            marks[old] = _spans(before, [(i1, i2) for tag, i1, i2, _, _ in codes if tag != "equal"])
            marks[new] = _spans(after, [(j1, j2) for tag, _, _, j1, j2 in codes if tag != "equal"])
    return marks


def _spans(words: list[str], ranges: list[tuple[int, int]]) -> Marks:
    """Ranges of words as ranges of characters; those with only blanks between them are one."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    spans: Marks = []
    for first, last in ranges:
        if first == last:
            continue
        between = "".join(words[_word_at(starts, spans[-1][1]) : first]) if spans else "x"
        if spans and not between.strip():
            spans[-1] = (spans[-1][0], starts[last])
        else:
            spans.append((starts[first], starts[last]))
    return spans


def _word_at(starts: list[int], position: int) -> int:
    return starts.index(position)


def plus_minus(added: int, removed: int) -> Html:
    """Both counts, each with its colour and its sign."""
    plus = h("span", f"+{added}", class_="plus")
    minus = h("span", f"−{removed}", class_="minus")  # noqa: RUF001
    return h("span", plus, join(" "), minus, class_="counts")
