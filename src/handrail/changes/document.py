"""Changes as JSON, by whomever they are written: closed, and strict about types. See docs/proposals.md."""

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from handrail.changes.forms import Delete, Form, Lines, Move, Patch, Replace, Whole
from handrail.changes.items import Edits, LineItems, edits_of, line_edits_of
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Value

MOST_CHANGES = 2_000
NAMED_PROBLEMS = 4


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
    mutation_class: Literal["", "AST_REFACTOR", "INTENT_EVOLUTION"] = ""
    """Whether behaviour is kept; that is checked."""
    intent_id: str = ""
    """The intent that they belong to."""


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
