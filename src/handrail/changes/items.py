"""Edits of one file as JSON: in a proposal, and as arguments of the tool that edits."""

from typing import Annotated, Literal

from pydantic import Field

from handrail.changes.forms import Edit, LineEdit
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value

MOST_EDITS = 100

# True is no line, and neither is 2.0.
Number = Annotated[int, Field(strict=True)]


class EditItem(Value):
    search: str
    replace: str
    line: Annotated[Number, Field(ge=0, description="where it begins, if it stands more than once")] = 0


class LineItem(Value):
    op: Literal["insert", "delete", "replace"]
    start: Number = 0
    end: Number = 0
    after: Annotated[Number, Field(description="insert; 0: at the beginning")] = -1
    lines: tuple[str, ...] = ()
    expected: Annotated[tuple[str, ...], Field(description="lines there now")] = ()


Edits = Annotated[tuple[EditItem, ...], Field(max_length=MOST_EDITS)]
LineItems = Annotated[tuple[LineItem, ...], Field(max_length=MOST_EDITS)]


def edits_of(items: tuple[EditItem, ...]) -> tuple[Edit, ...]:
    return tuple(Edit(item.search, item.replace, item.line) for item in items)


def line_edits_of(path: str, items: tuple[LineItem, ...]) -> tuple[LineEdit, ...]:
    """The edits; raises PathProblem for one that does not say where."""
    return tuple(_line_edit(path, item) for item in items)


def _line_edit(path: str, item: LineItem) -> LineEdit:
    if item.op == "insert":
        if item.start or item.end:
            raise _unclear(path, "An insertion has `after`, the line that it follows, and not start and end")
        return LineEdit("insert", item.after, lines=item.lines, expected=item.expected)
    if item.after != -1:
        raise _unclear(path, f"To {item.op} lines, `start` and `end` say which, and `after` is not given")
    return LineEdit(item.op, item.start, item.end, item.lines, item.expected)


def _unclear(path: str, why: str) -> PathProblem:
    return PathProblem(f"{why}.", "invalid_arguments", path)
