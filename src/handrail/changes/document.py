"""Changes as JSON, by whomever they are written: closed, and strict about types. See docs/proposals.md."""

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from handrail.changes.forms import Delete, Edit, Form, LineEdit, Lines, Move, Patch, Replace, Whole
from handrail.protocol.errors import PathProblem, UsageProblem
from handrail.protocol.values import Value

MOST_EDITS = 100
MOST_CHANGES = 2_000
NAMED_PROBLEMS = 4

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


class CreateChange(Value):
    form: Literal["create"]
    path: str
    text: str


class RewriteChange(Value):
    form: Literal["rewrite"]
    path: str
    text: str
    base_hash: str = ""


class ReplaceChange(Value):
    form: Literal["replace"]
    path: str
    edits: Annotated[Edits, Field(min_length=1)]
    base_hash: str = ""


class LinesChange(Value):
    form: Literal["lines"]
    path: str
    edits: Annotated[LineItems, Field(min_length=1)]
    base_hash: str = ""


class DiffChange(Value):
    form: Literal["diff"]
    path: str
    diff: str
    base_hash: str = ""


class DeleteChange(Value):
    form: Literal["delete"]
    path: str
    base_hash: str = ""


class MoveChange(Value):
    form: Literal["move"]
    path: str
    to: str
    base_hash: str = ""


Change = Annotated[
    CreateChange | RewriteChange | ReplaceChange | LinesChange | DiffChange | DeleteChange | MoveChange,
    Field(discriminator="form"),
]


class Document(Value):
    changes: Annotated[tuple[Change, ...], Field(min_length=1, max_length=MOST_CHANGES)]
    summary: str = ""
    """What they are for, in a sentence."""


def read_document(data: bytes) -> Document:
    """The document in a file; raises UsageProblem that says what is wrong with it, and where."""
    try:
        return Document.model_validate_json(data)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc'])) or 'the document'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)[:NAMED_PROBLEMS]
        ]
        raise UsageProblem(f"This is no proposal: {'; '.join(problems)}.") from error


def form_of(change: Change) -> Form:
    """What a change asks of `changes`."""
    match change:
        case CreateChange():
            return Whole(change.path, change.text, only="create")
        case RewriteChange():
            return Whole(change.path, change.text, change.base_hash, only="rewrite")
        case ReplaceChange():
            return Replace(change.path, edits_of(change.edits), change.base_hash)
        case LinesChange():
            return Lines(change.path, line_edits_of(change.path, change.edits), change.base_hash)
        case DiffChange():
            return Patch(change.path, change.diff, change.base_hash)
        case DeleteChange():
            return Delete(change.path, change.base_hash)
        case MoveChange():
            return Move(change.path, change.to, change.base_hash)


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
