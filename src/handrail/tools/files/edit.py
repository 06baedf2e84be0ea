"""The tools that change files: edit, write, apply_diff, delete, move."""

from abc import abstractmethod
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from handrail.changes.forms.edit_forms import (
    Delete,
    Edits,
    Form,
    LineItems,
    Lines,
    Move,
    Patch,
    Replace,
    Whole,
    line_edits_of,
)
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value
from handrail.tools.files.diagnostics import Diagnostics
from handrail.tools.tool import CallContext, CallTarget, HiddenFromModel, Outcome, Prepared, Tool
from handrail.workspace.paths import ResolvedPath

MutationClass = Annotated[
    Literal["", "AST_REFACTOR", "INTENT_EVOLUTION"],
    Meta(description="AST_REFACTOR: behaviour is kept, and that is checked"),
    HiddenFromModel(),
]


class FileChangeArguments(Value):
    path: str
    base_hash: str = ""
    todo: str = ""
    mutation_class: Annotated[Literal["", "AST_REFACTOR", "INTENT_EVOLUTION"], HiddenFromModel()] = ""
    intent_id: Annotated[str, HiddenFromModel()] = ""  # refused unless it is the active intent

    @property
    def completes(self) -> tuple[str, ...]:
        return (self.todo,) if self.todo else ()


class EditArguments(FileChangeArguments):
    # Described here only: a model reads all tools together, so once is enough and saves tokens.
    base_hash: Annotated[str, Meta(description="hash shown by read")] = ""
    todo: Annotated[str, Meta(description="id of the todo this completes")] = ""
    mutation_class: MutationClass = ""
    edits: Edits = ()
    lines: Annotated[LineItems, Meta(description="instead of edits: by line numbers")] = ()


class WriteArguments(FileChangeArguments, kw_only=True):
    text: str
    only: Annotated[Literal["", "create", "rewrite"], HiddenFromModel()] = ""
    """`create`: refuse if the file exists. `rewrite`: refuse if it does not."""


class DiffArguments(FileChangeArguments, kw_only=True):
    diff: str


class MoveArguments(FileChangeArguments, kw_only=True):
    to: str


Changes = TypeVar("Changes", bound=FileChangeArguments)


class FileChangeTool(Tool[Changes]):
    """A tool that changes one file, alone or in a batch with other calls of the same answer."""

    action = "write"

    def __init__(self, diagnostics: Diagnostics | None = None) -> None:
        self.diagnostics = diagnostics

    @abstractmethod
    def form(self, arguments: Changes, place: ResolvedPath) -> Form:
        """The edit that the arguments describe."""

    def checked_form(self, arguments: Changes, work: CallContext) -> Form:
        """The edit at the resolved places; raises PathProblem if it is refused."""
        from handrail.changes.proposal import refuse_link

        refuse_other_intent(arguments, work)
        form = self.form(arguments, work.resolved)
        if isinstance(form, Delete | Move):
            refuse_link(work.workspace, arguments.path)
        if isinstance(form, Move):
            return form._replace(destination=work.others[0])
        return form

    def target(self, arguments: Changes) -> CallTarget:
        return CallTarget(path=arguments.path, todos=arguments.completes)

    def subject(self, arguments: Changes, work: CallContext) -> dict[str, Any]:
        return {"path": super().subject(arguments, work)["path"]}

    def prepare(self, arguments: Changes, work: CallContext) -> Prepared:
        from handrail.tools.files.edit_batch import BatchMember, prepare_calls

        return prepare_calls([BatchMember(self, arguments, work)], work)

    def is_current(self, arguments: Changes, work: CallContext) -> bool:
        from handrail.tools.files.edit_batch import files_unchanged

        refuse_other_intent(arguments, work)
        return files_unchanged(work)

    async def run(self, arguments: Changes, work: CallContext) -> Outcome:
        from handrail.tools.files.edit_batch import BatchMember, apply_calls

        return await apply_calls([BatchMember(self, arguments, work)], work)


def refuse_other_intent(arguments: FileChangeArguments, work: CallContext) -> None:
    """Raises PathProblem if the call is for another intent than the active one."""
    active = work.session.state.intent
    if arguments.intent_id and arguments.intent_id != active:
        now = f"{active} is active" if active else "no intent is active"
        message = f"The call is for intent {arguments.intent_id[:80]}, but {now}. Select it first."
        raise PathProblem(message, "invalid_arguments", work.resolved.path)


class EditFile(FileChangeTool[EditArguments]):
    name = "edit"
    description = "Replace text in a file you have read. Each search must match once, or `replace_all`."
    arguments = EditArguments

    def form(self, arguments: EditArguments, place: ResolvedPath) -> Form:
        if bool(arguments.edits) == bool(arguments.lines):
            raise PathProblem("Give either `edits` or `lines`.", "invalid_arguments", place.path)
        if arguments.lines:
            return Lines(place, line_edits_of(place.path, arguments.lines), arguments.base_hash)
        return Replace(place, arguments.edits, arguments.base_hash)


class WriteFile(FileChangeTool[WriteArguments]):
    name = "write"
    description = "Create a file, or rewrite one you have read whole."
    arguments = WriteArguments

    def form(self, arguments: WriteArguments, place: ResolvedPath) -> Form:
        return Whole(place, arguments.text, arguments.base_hash, arguments.only)


class ApplyDiff(FileChangeTool[DiffArguments]):
    name = "apply_diff"
    description = "Change one file by a unified diff."
    arguments = DiffArguments

    def form(self, arguments: DiffArguments, place: ResolvedPath) -> Form:
        return Patch(place, arguments.diff, arguments.base_hash)


class DeleteFile(FileChangeTool[FileChangeArguments]):
    name = "delete"
    description = "Delete a file you have read."
    arguments = FileChangeArguments

    def form(self, arguments: FileChangeArguments, place: ResolvedPath) -> Form:
        return Delete(place, arguments.base_hash)


class MoveFile(FileChangeTool[MoveArguments]):
    name = "move"
    description = "Rename a file you have read."
    arguments = MoveArguments

    def target(self, arguments: MoveArguments) -> CallTarget:
        path = arguments.path
        return CallTarget(path=path, others=(arguments.to,), moved=(path,), todos=arguments.completes)

    def form(self, arguments: MoveArguments, place: ResolvedPath) -> Form:
        return Move(place, arguments.to, arguments.base_hash)

    def summary(self, arguments: MoveArguments, work: CallContext) -> str:
        return f"{work.resolved.path} to {arguments.to}"
