"""A proposal as a JSON document: parse it and turn it into forms. See docs/proposals.md."""

from typing import Annotated, Literal

from msgspec import Meta

from handrail.changes.forms import edit_forms as forms
from handrail.protocol.json_input import read_json
from handrail.protocol.values import Value

MAX_CHANGES = 2_000


class CreateChange(Value, tag_field="form", tag="create"):
    path: str
    text: str


class RewriteChange(Value, tag_field="form", tag="rewrite"):
    path: str
    text: str
    base_hash: str = ""


class ReplaceChange(Value, tag_field="form", tag="replace"):
    path: str
    edits: Annotated[forms.Edits, Meta(min_length=1)]
    base_hash: str = ""


class LinesChange(Value, tag_field="form", tag="lines"):
    path: str
    edits: Annotated[forms.LineItems, Meta(min_length=1)]
    base_hash: str = ""


class DiffChange(Value, tag_field="form", tag="diff"):
    path: str
    diff: str
    base_hash: str = ""


class DeleteChange(Value, tag_field="form", tag="delete"):
    path: str
    base_hash: str = ""


class MoveChange(Value, tag_field="form", tag="move"):
    path: str
    to: str
    base_hash: str = ""


Change = CreateChange | RewriteChange | ReplaceChange | LinesChange | DiffChange | DeleteChange | MoveChange


class Document(Value):
    changes: Annotated[tuple[Change, ...], Meta(min_length=1, max_length=MAX_CHANGES)]
    summary: str = ""
    mutation_class: Literal["", "AST_REFACTOR", "INTENT_EVOLUTION"] = ""
    intent_id: str = ""


def read_document(data: bytes) -> Document:
    """The document in a file; raises UsageProblem that says what is wrong with it, and where."""
    return read_json(data, Document, "proposal", "document")


def form_of(change: Change) -> forms.Form:
    match change:
        case CreateChange():
            return forms.Whole(change.path, change.text, only="create")
        case RewriteChange():
            return forms.Whole(change.path, change.text, change.base_hash, only="rewrite")
        case ReplaceChange():
            return forms.Replace(change.path, change.edits, change.base_hash)
        case LinesChange():
            edits = forms.line_edits_of(change.path, change.edits)
            return forms.Lines(change.path, edits, change.base_hash)
        case DiffChange():
            return forms.Patch(change.path, change.diff, change.base_hash)
        case DeleteChange():
            return forms.Delete(change.path, change.base_hash)
        case MoveChange():
            return forms.Move(change.path, change.to, change.base_hash)
