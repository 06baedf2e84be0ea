"""Search and replacement: each search text is found in the file as it was, and in one place."""

import difflib
from itertools import pairwise
from typing import NamedTuple

from handrail.changes.endings import ending_after, in_place_of, only_ending
from handrail.changes.forms import Edit
from handrail.changes.matching import Found, find
from handrail.protocol.errors import PathProblem

COMPARED_LINES = 5_000
NAMED_PLACES = 5


class Text(NamedTuple):
    """A new text, and the steps of tolerance that it took to get there."""

    text: str
    matched: tuple[str, ...] = ()


class _Piece(NamedTuple):
    start: int
    end: int
    text: str
    step: str
    number: int = 0


def replaced(path: str, text: str, edits: tuple[Edit, ...]) -> Text:
    """The text after all edits; raises PathProblem for the first that does not fit."""
    pieces = []
    for number, edit in enumerate(edits, start=1):
        which = f"Edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        pieces.append(_piece(path, text, edit, which)._replace(number=number))
    pieces.sort()
    for before, piece in pairwise(pieces):
        if piece.start < before.end:
            raise PathProblem(
                f"Edits {before.number} and {piece.number} change the same text of {path}, at line"
                f" {_line(text, piece.start)}. Make one edit of them.",
                "overlap",
                path,
            )
    result, at = [], 0
    for piece in pieces:
        result += [text[at : piece.start], piece.text]
        at = piece.end
    steps = dict.fromkeys(piece.step for piece in pieces if piece.step)
    return Text("".join([*result, text[at:]]), tuple(steps))


def _piece(path: str, text: str, edit: Edit, which: str) -> _Piece:
    found = _only_place(path, text, edit, which)
    _refuse_repeated(path, text, edit, found, which)
    shifted = found.shift.applied(edit.replace)
    if shifted is None:
        raise PathProblem(
            f"{which}the search text stands in {path} less indented than it was written, and the replacement"
            " is not indented enough to be moved with it. Copy both as the file has them.",
            "no_match",
            path,
        )
    start, end = found.start, found.end
    new = in_place_of(text[start:end], shifted, only_ending(text), ending_after(text, end))
    if found.unended:
        start, new = _unended(text, start, new)
    return _Piece(start, end, new, found.step)


def _unended(text: str, start: int, new: str) -> tuple[int, str]:
    """A file that ends without a line break still does so."""
    if new:
        return start, new.removesuffix("\n").removesuffix("\r")
    before = text[:start]
    return len(before.removesuffix("\n").removesuffix("\r")), new


def _only_place(path: str, text: str, edit: Edit, which: str) -> Found:
    if not edit.search:
        raise PathProblem(
            f"{which}the search text is empty, and {path} exists. Give the text that is to be replaced, or"
            " write the file as a whole.",
            "file_exists",
            path,
        )
    if edit.search == edit.replace:
        raise PathProblem(f"{which}search and replacement are the same text.", "no_change", path)
    places = find(text, edit.search)
    if edit.line and places:
        lines = [_line(text, place.start) for place in places]
        places = [place for place, line in zip(places, lines, strict=True) if line == edit.line]
        if not places:
            raise PathProblem(
                f"{which}the search text begins at line {_listed(lines)} of {path}, not at {edit.line}.",
                "no_match",
                path,
            )
    if not places:
        raise _absent(path, text, edit, which)
    if len(places) > 1:
        listed = _listed([_line(text, place.start) for place in places])
        raise PathProblem(
            f"{which}the search text stands at lines {listed} of {path}. Add lines around it until it is"
            " found once, or say at which `line` it begins.",
            "ambiguous_match",
            path,
        )
    return places[0]


def _listed(lines: list[int]) -> str:
    more = " and more" if len(lines) > NAMED_PLACES else ""
    return ", ".join(map(str, lines[:NAMED_PLACES])) + more


def _refuse_repeated(path: str, text: str, edit: Edit, found: Found, which: str) -> None:
    """An edit that adds to what it searches is found again after it was made."""
    at = edit.replace.find(edit.search)
    while at >= 0:
        start = found.start - at
        if start >= 0 and text.startswith(edit.replace, start):
            raise PathProblem(
                f"{which}{path} has the replacement already, at line {_line(text, start)}: it is done.",
                "already_applied",
                path,
            )
        at = edit.replace.find(edit.search, at + 1)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _absent(path: str, text: str, edit: Edit, which: str) -> PathProblem:
    if edit.replace.strip() and (done := find(text, edit.replace)):
        line = _line(text, done[0].start)
        return PathProblem(
            f"{which}the search text is not in {path}, but the replacement is, at line {line}: is it done?",
            "already_applied",
            path,
        )
    hint = _nearest(text, edit.search)
    return PathProblem(
        f"{which}the search text is not in {path}.{hint} Copy it from the file as it is now.",
        "no_match",
        path,
    )


def _nearest(text: str, search: str) -> str:
    wanted = next((line for line in search.split("\n") if line.strip()), "").strip()
    lines = [line.strip() for line in text.split("\n")[:COMPARED_LINES]]
    close = difflib.get_close_matches(wanted, lines, n=1, cutoff=0.6) if wanted else []
    return f" The nearest line is {lines.index(close[0]) + 1}: {close[0][:200]}" if close else ""
