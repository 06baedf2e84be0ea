"""Apply edits by search text and by line numbers."""

import difflib
from itertools import pairwise
from typing import NamedTuple

from handrail.changes import text_matching as matching
from handrail.changes.forms.edit_forms import Edit, LineEdit
from handrail.changes.text_matching import BLANKS, TRAILING, Line, Match, find_text, to_unix
from handrail.protocol.errors import PathProblem

COMPARED_LINES = 5_000
NAMED_PLACES = 5
MAX_PLACES = 10_000
"""Places that one edit replaces at most."""


class EditedText(NamedTuple):
    text: str
    matched: tuple[str, ...] = ()
    replaced: int = 0
    """Places that edits with `replace_all` changed."""


class _Piece(NamedTuple):
    start: int
    end: int
    text: str
    step: str
    number: int


def apply_edits(path: str, text: str, edits: tuple[Edit, ...]) -> EditedText:
    """The text after all edits; raises PathProblem for the first that does not fit."""
    if not text and len(edits) == 1 and not edits[0].search:
        return EditedText(edits[0].replace)
    pieces: list[_Piece] = []
    replaced = 0
    for number, edit in enumerate(edits, start=1):
        which = f"Edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        found = _pieces(path, text, edit, which, number)
        pieces += found
        replaced += len(found) if edit.replace_all else 0
    pieces.sort()
    for before, piece in pairwise(pieces):
        if piece.start < before.end and piece.number != before.number:
            both = f"Edits {before.number} and {piece.number} change the same text of {path}"
            message = f"{both}, at line {_line(text, piece.start)}. Combine them into one edit."
            raise PathProblem(message, "overlap", path)
    parts: list[str] = []
    at = 0
    for piece in pieces:
        parts += (text[at : piece.start], piece.text)
        at = piece.end
    steps = tuple(dict.fromkeys(piece.step for piece in pieces if piece.step))
    return EditedText("".join((*parts, text[at:])), steps, replaced)


def _pieces(path: str, text: str, edit: Edit, which: str, number: int) -> list[_Piece]:
    pieces, usual = [], matching.only_ending(text)
    for found in _matches(path, text, edit, which):
        _refuse_repeated(path, text, edit, found, which)
        shifted = found.shift.applied(edit.replace)
        if shifted is None:
            why = f"{which}{path} has the search text with less indentation, and the replacement"
            message = f"{why} has too little to be shifted with it. Copy both with the file's indentation."
            raise PathProblem(message, "no_match", path)
        start, end = found.start, found.end
        after = "" if usual else matching.ending_after(text, end)
        new = matching.with_endings_of(text[start:end], shifted, usual, after)
        if found.unended:  # a file that ends without a line break still does so
            if new:
                new = new.removesuffix("\n").removesuffix("\r")
            else:
                start = len(text[:start].removesuffix("\n").removesuffix("\r"))
        pieces.append(_Piece(start, end, new, found.step, number))
    return pieces


def _matches(path: str, text: str, edit: Edit, which: str) -> list[Match]:
    """The place that an edit means, or with `replace_all` every place; raises PathProblem otherwise."""
    if edit.replace_all and edit.line:
        message = f"{which}give either `line` or `replace_all`."
        raise PathProblem(message, "invalid_arguments", path)
    if not edit.search:
        why = f"{which}the search text is empty, but {path} exists."
        message = f"{why} Give the text to be replaced, or write the whole file."
        raise PathProblem(message, "file_exists", path)
    if edit.search == edit.replace:
        raise PathProblem(f"{which}search and replacement are the same text.", "no_change", path)
    if edit.replace_all and (everywhere := find_text(text, edit.search, MAX_PLACES + 1)):
        if len(everywhere) > MAX_PLACES:
            message = f"{which}the search text occurs more than {MAX_PLACES:,} times in {path}."
            raise PathProblem(f"{message} Search for a longer text.", "ambiguous_match", path)
        return _without_overlaps(everywhere)
    places = find_text(text, edit.search)
    lines = [_line(text, place.start) for place in places]
    listed = ", ".join(map(str, lines[:NAMED_PLACES])) + " and more" * (len(lines) > NAMED_PLACES)
    if edit.line and places:
        places = [place for place, line in zip(places, lines, strict=True) if line == edit.line]
        if not places:
            message = f"{which}the search text begins at line {listed} of {path}, not at {edit.line}."
            raise PathProblem(message, "no_match", path)
    if not places:
        raise _no_match(path, text, edit, which)
    if len(places) > 1:
        times = f"{len(places):,}{' or more' * (len(places) == matching.MAX_MATCHES)} times"
        why = f"{which}the search text occurs {times} in {path}, at lines {listed}."
        hint = (
            "Add lines around it until it is unique, give the `line` where it begins, or set `replace_all`."
        )
        raise PathProblem(f"{why} {hint}", "ambiguous_match", path)
    return places


def _without_overlaps(places: list[Match]) -> list[Match]:
    """The places from the first on that do not overlap one before them."""
    kept: list[Match] = []
    for place in places:
        if not kept or place.start >= kept[-1].end:
            kept.append(place)
    return kept


def _refuse_repeated(path: str, text: str, edit: Edit, found: Match, which: str) -> None:
    """An edit that adds to what it searches is found again after it was made."""
    at = edit.replace.find(edit.search)
    while at >= 0:
        start = found.start - at
        if start >= 0 and text.startswith(edit.replace, start):
            done = f"{which}{path} already has the replacement, at line {_line(text, start)}"
            rest = ". Search for a text that leaves this place out." if edit.replace_all else ": it is done."
            raise PathProblem(f"{done}{rest}", "already_applied", path)
        at = edit.replace.find(edit.search, at + 1)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _no_match(path: str, text: str, edit: Edit, which: str) -> PathProblem:
    if edit.replace.strip() and (done := find_text(text, edit.replace)):
        line = _line(text, done[0].start)
        message = f"{which}the search text is not in {path}, but the replacement is, at line {line}."
        return PathProblem(f"{message} It may already be done.", "already_applied", path)
    first = next((line for line in edit.search.split("\n") if line.strip()), "").strip()
    lines = [line.strip() for line in text.split("\n")[:COMPARED_LINES]]
    close = difflib.get_close_matches(first, lines, n=1, cutoff=0.6) if first else []
    hint = f" The nearest line is {lines.index(close[0]) + 1}: {close[0][:200]}" if close else ""
    message = f"{which}the search text is not in {path}.{hint} Copy it from the file as it is now."
    return PathProblem(message, "no_match", path)


class _Span(NamedTuple):
    start: int  # lines `start` to `end`, counted from 0, the end not included
    end: int
    order: int
    edit: LineEdit


def apply_line_edits(path: str, text: str, edits: tuple[LineEdit, ...]) -> EditedText:
    """The text after all edits; raises PathProblem for the first that does not fit."""
    lines = matching.split_lines(text)
    spans = sorted(_span(path, edit, len(lines), order) for order, edit in enumerate(edits))
    for before, after in pairwise(spans):
        if after.start < before.end:
            message = f"Two edits of {path} change line {after.start + 1}. Combine them into one edit."
            raise PathProblem(message, "overlap", path)
    steps = [_check_expected(path, lines, span) for span in spans]
    result = list(lines)
    for span in reversed(spans):
        result[span.start : span.end] = _new_lines(span, lines)
    ending = matching.first_ending([*reversed(result), *reversed(lines)])
    new = matching.join_lines(result, ending, final_break=not lines or bool(lines[-1].end))
    return EditedText(new, tuple(dict.fromkeys(step for step in steps if step)))


def _span(path: str, edit: LineEdit, count: int, order: int) -> _Span:
    if edit.op == "insert":
        if not 0 <= edit.start <= count:
            raise _out_of_range(path, count, f"There is no line {edit.start} to insert after")
        if not edit.lines:
            raise PathProblem(f"An insertion into {path} has no lines.", "invalid_arguments", path)
        return _Span(edit.start, edit.start, order, edit)
    if not 1 <= edit.start <= edit.end <= count:
        raise _out_of_range(path, count, f"There are no lines {edit.start} to {edit.end}")
    if edit.op == "delete" and edit.lines:
        message = f"A deletion in {path} has new lines. Use `replace` to put lines in their place."
        raise PathProblem(message, "invalid_arguments", path)
    return _Span(edit.start - 1, edit.end, order, edit)


def _out_of_range(path: str, count: int, what: str) -> PathProblem:
    has = f"{count} lines" if count != 1 else "1 line"
    return PathProblem(f"{what}: {path} has {has}. Read it, then repeat the change.", "out_of_range", path)


def _check_expected(path: str, lines: list[Line], span: _Span) -> str:
    """The step of tolerance under which the lines are the expected ones."""
    if not span.edit.expected:
        return ""
    expected = [to_unix(line).removesuffix("\n") for line in span.edit.expected]
    first = max(0, span.start - 1) if span.edit.op == "insert" else span.start
    found = [line.body for line in lines[first : max(span.end, first + 1)]]
    if found == expected:
        return ""
    if [body.rstrip(BLANKS) for body in found] == [body.rstrip(BLANKS) for body in expected]:
        return TRAILING
    shown = "\n".join(found[:5])[:400]
    message = f"Line {first + 1} of {path} is not what was expected there. It is:\n{shown}\n"
    raise PathProblem(f"{message}Read the file again, then repeat the change.", "no_match", path)


def _new_lines(span: _Span, lines: list[Line]) -> list[Line]:
    bodies = [body for each in span.edit.lines for body in to_unix(each).removesuffix("\n").split("\n")]
    old = lines[span.start : span.end] or lines[max(0, span.start - 1) : span.start]
    usual = matching.first_ending(lines)
    ends = [line.end or usual for line in old] or [usual]
    return [Line(body, ends[min(n, len(ends) - 1)]) for n, body in enumerate(bodies)]
