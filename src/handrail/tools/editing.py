"""The tools that change files: they only propose; `changes` checks and writes."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field

from handrail.changes.forms import Delete, Form, Lines, Move, Patch, Replace, Whole
from handrail.changes.items import Edits, LineItems, edits_of, line_edits_of
from handrail.models.base import ToolSpec
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import Event
from handrail.protocol.values import SHOWN_DIGITS, Value
from handrail.tools.base import About, Outcome, Tool, Work
from handrail.tools.diagnosing import Diagnosing
from handrail.tools.schema import Unsaid, schema_of
from handrail.tools.secrets import Secrets
from handrail.workspace.places import Place

if TYPE_CHECKING:
    from handrail.changes.change_set import FileEdit
    from handrail.changes.proposal import Proposed
    from handrail.tools.mutation import Classified

MutationClass = Annotated[
    Literal["", "AST_REFACTOR", "INTENT_EVOLUTION"],
    Field(description="AST_REFACTOR: behaviour is kept, and that is checked"),
    Unsaid(),
]
TodoId = Annotated[str, Field(description="id of the todo this completes")]
NO_NOTES: Mapping[str, str] = MappingProxyType({})
DONE = {"create": "Created", "update": "Changed", "delete": "Deleted", "move": "Moved"}


class ChangingArguments(Value):
    path: str
    base_hash: str = ""
    todo: str = ""
    todos: Annotated[tuple[str, ...], Unsaid()] = ()
    """Further todos that this completes."""
    mutation_class: Annotated[Literal["", "AST_REFACTOR", "INTENT_EVOLUTION"], Unsaid()] = ""
    intent_id: Annotated[str, Unsaid()] = ""
    """The active intent; nothing is done for another one."""

    @property
    def completes(self) -> tuple[str, ...]:
        """The todos that are done with it, once each; most calls name none."""
        return tuple(dict.fromkeys(todo for todo in (self.todo, *self.todos) if todo))


class EditArguments(ChangingArguments):
    # Said once: a model is told of all tools together, and in few bytes.
    base_hash: Annotated[str, Field(description="hash shown by read")] = ""
    todo: TodoId = ""
    mutation_class: MutationClass = ""
    edits: Edits = ()
    lines: Annotated[LineItems, Field(description="instead of edits: by line numbers")] = ()


class WriteArguments(ChangingArguments):
    text: str
    only: Annotated[Literal["", "create", "rewrite"], Unsaid()] = ""
    """Refuse where the file exists, or where it does not."""


class DiffArguments(ChangingArguments):
    diff: str


class DeleteArguments(ChangingArguments):
    pass


class MoveArguments(ChangingArguments):
    to: str


Changes = TypeVar("Changes", bound=ChangingArguments)


class Changing(Tool[Changes]):
    """What all of them share: the preview is the diff, running is applying."""

    action = "write"

    def __init__(self, diagnosing: Diagnosing | None = None) -> None:
        self.diagnosing = diagnosing

    @abstractmethod
    def form(self, arguments: Changes, place: Place) -> Form:
        """What the arguments ask of `changes`."""

    def about(self, arguments: Changes) -> About:
        return About(path=arguments.path, todos=arguments.completes)

    def subject(self, arguments: Changes, work: Work) -> dict[str, Any]:
        return {"path": super().subject(arguments, work)["path"]}

    def preview(self, arguments: Changes, work: Work) -> str:
        edit = self._edit(self._proposed(arguments, work))
        moved = f"move {edit.path} to {edit.destination}\n" if edit.destination else ""
        return moved + edit.diff.text

    def confirmation(self, arguments: Changes, work: Work) -> str:
        return self._proposed(arguments, work).confirm

    async def run(self, arguments: Changes, work: Work) -> Outcome:
        from handrail.changes.apply import applying
        from handrail.changes.change_set import ChangeSet, Origin

        proposed = self._proposed(arguments, work)
        edit = self._edit(proposed)
        notes = await diagnostics(self.diagnosing, proposed, work)
        mutation = await mutation_of([arguments], proposed, work)
        # Without a wait from here on, a cancelled turn finds the change made and recorded, or not begun.
        if proposed.confirm and not work.confirmed:
            raise PathProblem(f"{proposed.confirm}. Only the user can allow it.", "large_loss", edit.path)
        turn = work.session.state.turn
        change_set = ChangeSet(
            proposed.edits,
            Origin(
                work.turn_id,
                work.call_id,
                model=turn.model if turn else "",
                mutation_class=mutation.mutation_class,
                mutation_problem=mutation.problem,
                todos=arguments.completes,
            ),
            hard_links_agreed=work.decided.links > 1,
        )
        applied = work.held.enter_context(applying(work.session, work.workspace, change_set))
        return outcome_of(edit, applied, notes=notes, mutation=mutation)

    def _proposed(self, arguments: Changes, work: Work) -> "Proposed":
        from handrail.changes.proposal import propose
        from handrail.changes.shown import Shown

        state = work.session.state
        form = self.checked_form(arguments, work)
        proposed = propose(work.workspace, Shown(state.files, state.turns), [form])
        refuse_marks(self._edit(proposed), work.secrets)
        return proposed

    def checked_form(self, arguments: Changes, work: Work) -> Form:
        """What the arguments ask of `changes`; raises PathProblem where they name a link, not a file."""
        from handrail.changes.proposal import refuse_link

        refuse_other_intent(arguments, work)
        form = self.form(arguments, work.decided)
        if isinstance(form, Delete | Move):
            refuse_link(work.workspace, arguments.path)
        if isinstance(form, Move):
            return form._replace(destination=work.others[0])
        return form

    def _edit(self, proposed: "Proposed") -> "FileEdit":
        (edit,) = proposed.edits
        return edit

    def bound_spec(self) -> ToolSpec:
        """The tool as a model is told of it where work belongs to intents."""
        return ToolSpec(self.name, self.description, schema_of(self.arguments, told=("mutation_class",)))


def refuse_marks(edit: "FileEdit", secrets: Secrets) -> None:
    """Raises PathProblem where a mark that hides a secret would be written in its place."""
    for mark in secrets.marks_in((edit.new or b"").decode()):
        if mark.encode() not in (edit.old or b""):
            raise PathProblem(
                f"{mark} stands for a value that is not shown: it cannot be written to {edit.path}."
                " Change other lines, or ask the user to do it.",
                "protected_path",
                edit.path,
            )


def refuse_other_intent(arguments: ChangingArguments, work: Work) -> None:
    """Raises PathProblem where a call is for another intent than the active one."""
    active = work.session.state.intent
    if arguments.intent_id and arguments.intent_id != active:
        now = f"{active} is active" if active else "no intent is active"
        message = f"The call is for intent {arguments.intent_id[:80]}, and {now}. Select it first."
        raise PathProblem(message, "invalid_arguments", work.decided.path)


async def mutation_of(given: Sequence[ChangingArguments], proposed: "Proposed", work: Work) -> "Classified":
    """What the change counts as; nothing in a workspace without intents, unless somebody declared it."""
    from handrail.tools.mutation import classify

    return await classify([each.mutation_class for each in given], proposed.edits, work.workspace)


async def diagnostics(diagnosing: Diagnosing | None, proposed: "Proposed", work: Work) -> Mapping[str, str]:
    """What is to be told of the files as the edits will leave them, by path."""
    if diagnosing is None:
        return {}
    turn = work.session.state.turn
    # Where a check decides, it says more than a linter, and a small model has less to read.
    linter = not (turn and turn.check)
    return await diagnosing.notes(work.workspace, proposed.edits, linter=linter)


def outcome_of(
    edit: "FileEdit",
    *facts: Event,
    shown: bool = True,
    notes: Mapping[str, str] = NO_NOTES,
    mutation: "Classified | None" = None,
) -> Outcome:
    """How a call ends whose edit was made, with the facts that are committed with its end."""
    summary, content = _summary(edit), _content(edit)
    if mutation and mutation.told:
        summary = f"{summary}, {mutation.problem or 'refactor'}"
        content = f"{content}\n{mutation.told}"
    if note := notes.get(edit.destination or edit.path):
        summary, content = f"{summary}, with new problems", f"{content}\n{note}"
    return Outcome(summary, content, shown=edit.diff.text if shown else "", events=facts)


def _summary(edit: "FileEdit") -> str:
    """One line for a person; where the place was found with tolerance, the step that found it."""
    counts = f"+{edit.diff.added} -{edit.diff.removed}"
    return f"{counts}, found by {edit.matched}" if edit.matched else counts


def _content(edit: "FileEdit") -> str:
    """What the model is told: what was done, and the hash that the next edit is based on."""
    to = f" to {edit.destination}" if edit.destination else ""
    said = f"{DONE[edit.op]} {edit.path}{to} ({_summary(edit)})."
    if edit.new is None:
        return said
    return f"{said} ### {edit.destination or edit.path} [hash: {edit.new_sha256[:SHOWN_DIGITS]}]"


class EditFile(Changing[EditArguments]):
    name = "edit"
    description = "Replace text in a file you have read. Each search must match exactly once."
    arguments = EditArguments

    def form(self, arguments: EditArguments, place: Place) -> Form:
        if bool(arguments.edits) == bool(arguments.lines):
            raise PathProblem("Give either `edits` or `lines`.", "invalid_arguments", place.path)
        if arguments.lines:
            return Lines(place, line_edits_of(place.path, arguments.lines), arguments.base_hash)
        return Replace(place, edits_of(arguments.edits), arguments.base_hash)


class WriteFile(Changing[WriteArguments]):
    name = "write"
    description = "Create a file, or rewrite one you have read whole."
    arguments = WriteArguments

    def form(self, arguments: WriteArguments, place: Place) -> Form:
        return Whole(place, arguments.text, arguments.base_hash, arguments.only)


class ApplyDiff(Changing[DiffArguments]):
    name = "apply_diff"
    description = "Change one file by a unified diff."
    arguments = DiffArguments

    def form(self, arguments: DiffArguments, place: Place) -> Form:
        return Patch(place, arguments.diff, arguments.base_hash)


class DeleteFile(Changing[DeleteArguments]):
    name = "delete"
    description = "Delete a file you have read."
    arguments = DeleteArguments

    def form(self, arguments: DeleteArguments, place: Place) -> Form:
        return Delete(place, arguments.base_hash)


class MoveFile(Changing[MoveArguments]):
    name = "move"
    description = "Rename a file you have read."
    arguments = MoveArguments

    def about(self, arguments: MoveArguments) -> About:
        return About(path=arguments.path, others=(arguments.to,), todos=arguments.completes)

    def form(self, arguments: MoveArguments, place: Place) -> Form:
        return Move(place, arguments.to, arguments.base_hash)

    def summary(self, arguments: MoveArguments, work: Work) -> str:
        return f"{work.decided.path} to {arguments.to}"
