"""The forms of an edit: search and replace, lines, whole file, patch, delete, move; and their JSON."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value
from handrail.workspace.paths import ResolvedPath


class Edit(Value):
    search: str
    replace: str
    line: Annotated[int, Meta(ge=0, description="where it begins, if not unique")] = 0
    replace_all: bool = False


class LineItem(Value):
    """An edit by line numbers, as it is written in JSON."""

    op: Literal["insert", "delete", "replace"]
    start: int = 0
    end: int = 0
    after: Annotated[int, Meta(description="insert; 0: at the beginning")] = -1
    lines: tuple[str, ...] = ()
    expected: Annotated[tuple[str, ...], Meta(description="lines there now")] = ()


MAX_EDITS = 100
Edits = Annotated[tuple[Edit, ...], Meta(max_length=MAX_EDITS)]
LineItems = Annotated[tuple[LineItem, ...], Meta(max_length=MAX_EDITS)]


class LineEdit(NamedTuple):
    """An edit by line numbers of the file as it was shown, counted from 1."""

    op: Literal["insert", "delete", "replace"]
    start: int  # the first line; for an insertion the line before it, 0 for the beginning of the file
    end: int = 0  # the last line, included; unused for an insertion
    lines: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()  # what these lines hold now; for an insertion, the line before it


class Replace(NamedTuple):
    """Change parts of a file that exists; a single empty search creates a file, or fills an empty one."""

    path: str | ResolvedPath
    edits: tuple[Edit, ...]
    base_hash: str = ""


class Lines(NamedTuple):
    path: str | ResolvedPath
    edits: tuple[LineEdit, ...]
    base_hash: str = ""


class Whole(NamedTuple):
    """Write a whole file: a new one, or one whose whole text was seen."""

    path: str | ResolvedPath
    text: str
    base_hash: str = ""
    only: Literal["", "create", "rewrite"] = ""  # refuse where it would be the other of the two


class Patch(NamedTuple):
    path: str | ResolvedPath
    diff: str
    base_hash: str = ""


class Delete(NamedTuple):
    path: str | ResolvedPath
    base_hash: str = ""


class Move(NamedTuple):
    path: str | ResolvedPath
    destination: str | ResolvedPath
    base_hash: str = ""


Form = Replace | Lines | Whole | Patch | Delete | Move


def line_edits_of(path: str, items: tuple[LineItem, ...]) -> tuple[LineEdit, ...]:
    """The edits; raises PathProblem for one that does not say where."""
    found = []
    for item in items:
        if item.op == "insert":
            if item.start or item.end:
                message = "An insertion takes `after`, the line before it, instead of `start` and `end`."
                raise PathProblem(message, "invalid_arguments", path)
            found.append(LineEdit("insert", item.after, lines=item.lines, expected=item.expected))
        elif item.after != -1:
            message = f"To {item.op} lines, give `start` and `end`, and leave `after` out."
            raise PathProblem(message, "invalid_arguments", path)
        else:
            found.append(LineEdit(item.op, item.start, item.end, item.lines, item.expected))
    return tuple(found)
