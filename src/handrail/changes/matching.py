"""Search and replacement: a search text must stand in the file exactly once."""

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from handrail.protocol.errors import PathProblem
from handrail.workspace.text import LineEnding

COMPARED_LINES = 5_000
NAMED_PLACES = 5


class Edit(NamedTuple):
    search: str
    replace: str


def replaced(path: str, text: str, ending: LineEnding, edits: tuple[Edit, ...]) -> str:
    """The text after all edits, one after the other; raises PathProblem for the first that does not fit.

    A file whose lines all end one way is matched without regard to how the model ends its lines, and keeps
    its own way.
    """
    if ending == "mixed":
        return _replaced(path, text, edits)
    edits = tuple(Edit(_unix(edit.search), _unix(edit.replace)) for edit in edits)
    result = _replaced(path, _unix(text) if ending == "\r\n" else text, edits)
    return result.replace("\n", "\r\n") if ending == "\r\n" else result


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _replaced(path: str, text: str, edits: tuple[Edit, ...]) -> str:
    for number, edit in enumerate(edits, start=1):
        which = f"Edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        start = _only_place(path, text, edit, which)
        text = text[:start] + edit.replace + text[start + len(edit.search) :]
    return text


def _only_place(path: str, text: str, edit: Edit, which: str) -> int:
    if not edit.search:
        raise PathProblem(
            f"{which}the search text is empty. Give the text that is to be replaced.",
            "invalid_arguments",
            path,
        )
    if edit.search == edit.replace:
        raise PathProblem(f"{which}search and replacement are the same text.", "no_change", path)
    places = list(islice(_places(text, edit.search), NAMED_PLACES + 1))
    if not places:
        raise PathProblem(f"{which}{_absent(path, text, edit)}", "no_match", path)
    if len(places) > 1:
        lines = ", ".join(str(_line(text, place)) for place in places[:NAMED_PLACES])
        more = " and more" if len(places) > NAMED_PLACES else ""
        raise PathProblem(
            f"{which}the search text stands at lines {lines}{more} of {path}. Add lines around it until it is"
            " found once.",
            "ambiguous_match",
            path,
        )
    return places[0]


def _places(text: str, search: str) -> Iterator[int]:
    start = text.find(search)
    while start >= 0:
        yield start
        start = text.find(search, start + 1)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _absent(path: str, text: str, edit: Edit) -> str:
    if edit.replace.strip() and edit.replace in text:
        line = _line(text, text.find(edit.replace))
        return f"the search text is not in {path}, but the replacement is, at line {line}: is it done?"
    hint = _nearest(text, edit.search)
    return f"the search text is not in {path}.{hint} Copy it from the file as it is now."


def _nearest(text: str, search: str) -> str:
    wanted = next((line for line in search.split("\n") if line.strip()), "").strip()
    lines = [line.strip() for line in text.split("\n")[:COMPARED_LINES]]
    close = difflib.get_close_matches(wanted, lines, n=1, cutoff=0.6) if wanted else []
    return f" The nearest line is {lines.index(close[0]) + 1}: {close[0][:200]}" if close else ""
