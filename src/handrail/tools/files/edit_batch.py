"""Several edits as one change set: decided, shown, approved and applied all or none.

A single call, several calls of one answer, and a person's proposal document all go through `prepare_edits`
and `apply_prepared`. A change set is applied all or none.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from handrail.changes.apply import apply_when_free
from handrail.changes.change_set import By, ChangeSet, FileEdit, Origin
from handrail.changes.forms.document import DeleteChange, Document, MoveChange, form_of
from handrail.changes.forms.edit_forms import Form, Move
from handrail.changes.proposal import ShownVersions, propose, refuse_link
from handrail.policy.intent_rules import PROPOSAL
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeApplied
from handrail.protocol.values import HASH_DIGITS, Mode, Value
from handrail.tools.files.edit import FileChangeArguments, FileChangeTool, refuse_other_intent
from handrail.tools.files.mutation_check import MutationResult, classify
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.tool import (
    CallContext,
    CallTarget,
    Outcome,
    Prepared,
    Tool,
    pluralize,
    refuse_path_problems,
)
from handrail.workspace.files import Workspace, decode_lossy
from handrail.workspace.paths import ResolvedPath

BATCH = "changes"  # the name of several calls in the question to the user
NOT_RESOLVED: Mapping[str, ResolvedPath] = MappingProxyType({})
DONE = {"create": "Created", "update": "Changed", "delete": "Deleted", "move": "Moved"}


class PreparedEdits(Prepared):
    """The edits of a change set, one a file, with their diffs. Nothing is written yet."""

    edits: tuple[FileEdit, ...] = ()


def prepare_edits(
    workspace: Workspace, forms: Iterable[Form], shown: ShownVersions, secrets: Secrets = NO_SECRETS
) -> PreparedEdits:
    """What the edits make of the files; raises PathProblem if one is refused."""
    edits, confirm = propose(workspace, shown, list(forms))
    if workspace.unsaved:
        from handrail.changes.editor_writes import refuse_unsaved

        refuse_unsaved(workspace, edits)
    for edit in edits:
        secrets.refuse_new_marks(edit.path, decode_lossy(edit.old or b""), decode_lossy(edit.new or b""))
    return PreparedEdits("\n".join(map(_preview, edits)), confirm, edits)


def files_unchanged(work: CallContext) -> bool:
    """Whether every file still has the content that the prepared edits start from."""
    return all(_is_unchanged(work.workspace, edit) for edit in _edits(work))


async def apply_prepared(work: CallContext, origin: Origin) -> ChangeApplied:
    """Write the prepared edits, all or none; raises PathProblem if a file has changed since.

    The event is committed with the end of the call. Nothing waits between the write and that commit, so a
    cancelled turn has either made and recorded the change or not begun it.
    """
    linked = any(place.links > 1 for place in (work.resolved, *work.others))
    change_set = ChangeSet(_edits(work), origin, hard_links_agreed=linked)
    check = work.decide_again
    return await apply_when_free(work.cleanup, work.session, work.workspace, change_set, check=check)


def _edits(work: CallContext) -> tuple[FileEdit, ...]:
    if not isinstance(work.prepared, PreparedEdits):
        raise AssertionError("a file change was allowed without being prepared")
    return work.prepared.edits


def _is_unchanged(workspace: Workspace, edit: FileEdit) -> bool:
    if edit.destination and workspace.exists(edit.destination):
        return False
    if edit.old is None:
        return not workspace.exists(edit.path)
    return workspace.sha256(edit.path) == edit.old_sha256


def _preview(edit: FileEdit) -> str:
    moved = f"move {edit.path} to {edit.destination}" if edit.destination else ""
    everywhere = f"{pluralize(edit.replaced, 'place')} replaced" if edit.replaced else ""
    changed = edit.diff.text if edit.diff.added or edit.diff.removed or not moved else ""
    return "\n".join(part for part in (moved, everywhere, changed) if part)


class BatchMember(NamedTuple):
    tool: FileChangeTool[Any]
    arguments: FileChangeArguments
    work: CallContext


def prepare_calls(members: Sequence[BatchMember], work: CallContext) -> PreparedEdits:
    """What one or several calls would change."""
    state = work.session.state
    forms = (member.tool.checked_form(member.arguments, member.work) for member in members)
    return prepare_edits(work.workspace, forms, ShownVersions(state.files, state.turns), work.secrets)


async def apply_calls(members: Sequence[BatchMember], work: CallContext) -> Outcome:
    """Make the prepared changes; returns the first call's outcome, with the others in it."""
    edits = _edits(work)
    turn, diagnostics = work.session.state.turn, members[0].tool.diagnostics
    notes: Mapping[str, str] = {}
    if diagnostics:
        # A check says more than a linter, and a small model has less to read.
        notes = await diagnostics.notes(work.workspace, edits, linter=not (turn and turn.check))
    declared = [member.arguments.mutation_class for member in members]
    mutation = await classify(declared, edits, work.workspace)
    applied = await apply_prepared(
        work,
        Origin(
            work.turn_id,
            work.call_id,
            model=turn.model if turn else "",
            mutation_class=mutation.mutation_class,
            mutation_problem=mutation.problem,
            todos=tuple(dict.fromkeys(todo for member in members for todo in member.arguments.completes)),
        ),
    )
    made, by_editor = edits, dict[str, str]()
    if work.workspace.editor:
        from handrail.tools.files.in_editor import as_written, edit_note

        made = tuple(as_written(edits, applied, work))
        by_editor = {edit.path: edit_note(edit, new, work) for edit, new in zip(edits, made, strict=True)}
    by_path = {path: edit for edit in made for path in (edit.path, edit.destination) if path}
    outcomes: list[Outcome] = []
    for member in members:
        edit = by_path[member.work.resolved.path]
        outcome = _outcome(edit, notes, mutation)
        if note := by_editor.get(edit.path):
            outcome = replace(outcome, content=f"{outcome.content}\n{note}")
        if any(outcome.shown == before.shown for before in outcomes):
            outcome = replace(outcome, shown="")  # calls for the same file share its diff
        outcomes.append(outcome)
    return replace(outcomes[0], events=(applied,), others=tuple(outcomes[1:]))


def _outcome(edit: FileEdit, notes: Mapping[str, str], mutation: MutationResult) -> Outcome:
    """The outcome of an applied edit. The model needs the new hash for its next edit."""
    path = edit.destination or edit.path
    summary = f"+{edit.diff.added} -{edit.diff.removed}"
    summary += f", {pluralize(edit.replaced, 'place')}" if edit.replaced else ""
    summary += f", found by {edit.matched}" if edit.matched else ""
    to = f" to {edit.destination}" if edit.destination else ""
    content = f"{DONE[edit.op]} {edit.path}{to} ({summary})."
    if edit.new is not None:
        content += f" ### {path} [hash: {edit.new_sha256[:HASH_DIGITS]}]"
    if mutation.note:
        summary, content = f"{summary}, {mutation.problem or 'refactor'}", f"{content}\n{mutation.note}"
    if note := notes.get(path):
        summary, content = f"{summary}, with new problems", f"{content}\n{note}"
    return Outcome(summary, content, shown=edit.diff.text)


class EditBatch(Tool[Value]):
    """Several file changes that the gate handles as one call."""

    name = BATCH
    description = "The changes of one answer."
    action = "write"
    arguments = Value

    def __init__(self, members: Sequence[BatchMember]) -> None:
        self._members = tuple(members)

    def places(self) -> tuple[ResolvedPath, ...]:
        """Every place that a call of the batch writes, each once."""
        works = [member.work for member in self._members]
        return tuple(dict.fromkeys(place for work in works for place in (work.resolved, *work.others)))

    def subject(self, arguments: Value, work: CallContext) -> dict[str, Any]:
        return {"paths": [str(place.absolute) for place in self.places()]}

    def summary(self, arguments: Value, work: CallContext) -> str:
        paths = {member.work.resolved.path for member in self._members}
        return work.resolved.path if len(paths) == 1 else f"{len(paths)} files"

    def prepare(self, arguments: Value, work: CallContext) -> Prepared:
        try:
            return prepare_calls(self._members, work)
        except PathProblem:
            # The refusal is about the first call that cannot be done after those before it.
            for number, member in enumerate(self._members):
                with refuse_path_problems(member.tool.name, at_fault=number):
                    prepare_calls(self._members[: number + 1], work)
            raise

    def is_current(self, arguments: Value, work: CallContext) -> bool:
        for member in self._members:
            refuse_other_intent(member.arguments, member.work)
        return files_unchanged(work)

    async def run(self, arguments: Value, work: CallContext) -> Outcome:
        return await apply_calls(self._members, work)


class ApplyProposal(Tool[Document]):
    """Several changes as one call, for a person's proposal; models are not offered it."""

    name = PROPOSAL
    description = "Apply the changes of a proposal."
    action = "write"
    arguments = Document
    by: ClassVar[By] = "user"

    def target(self, arguments: Document) -> CallTarget:
        first, *others = _paths(arguments)
        moved = tuple(change.path for change in arguments.changes if isinstance(change, MoveChange))
        return CallTarget(path=first, others=tuple(others), moved=moved)

    def summary(self, arguments: Document, work: CallContext) -> str:
        paths = {change.path for change in arguments.changes}
        return next(iter(paths)) if len(paths) == 1 else f"{len(paths)} files"

    def prepare(self, arguments: Document, work: CallContext) -> Prepared:
        places = dict(zip(_paths(arguments), (work.resolved, *work.others), strict=True))
        return prepare_document(work.workspace, arguments, places, work.secrets)

    def is_current(self, arguments: Document, work: CallContext) -> bool:
        return files_unchanged(work)

    async def run(self, arguments: Document, work: CallContext) -> Outcome:
        edits = _edits(work)
        mutation = await classify([arguments.mutation_class], edits, work.workspace)
        applied = await apply_prepared(
            work,
            Origin(
                work.turn_id,
                work.call_id,
                by=self.by,
                intent=arguments.summary,
                mutation_class=mutation.mutation_class,
                mutation_problem=mutation.problem,
            ),
        )
        added, removed = sum(edit.diff.added for edit in edits), sum(edit.diff.removed for edit in edits)
        summary = f"{len(edits)} file{'s' * (len(edits) != 1)}, +{added} -{removed}"
        summary += f", {mutation.problem or 'refactor'}" if mutation.note else ""
        return Outcome(summary, applied.change_id, shown=work.prepared.preview, events=(applied,))


class EditFiles(ApplyProposal):
    """The same for an agent that is not ours: it needs whatever approval a model's edit needs."""

    name = "edit_files"
    by = "agent"


class ProposalTools:
    """The tools for applying a proposal: just one."""

    def __init__(self) -> None:
        self._tool = ApplyProposal()

    def find(self, name: str) -> Tool[Any] | None:
        return self._tool if name == PROPOSAL else None

    def names(self, mode: Mode) -> list[str]:
        return [PROPOSAL]


def prepare_document(
    workspace: Workspace,
    document: Document,
    places: Mapping[str, ResolvedPath] = NOT_RESOLVED,
    secrets: Secrets = NO_SECRETS,
) -> PreparedEdits:
    """What a proposal would change; `places` are its paths as resolved for the decision."""
    for change in document.changes:
        if isinstance(change, DeleteChange | MoveChange):
            refuse_link(workspace, change.path)
    forms = (_with_place(form_of(change), places) for change in document.changes)
    return prepare_edits(workspace, forms, ShownVersions(seen=None), secrets)


def _with_place(form: Form, places: Mapping[str, ResolvedPath]) -> Form:
    if isinstance(form, Move):
        form = form._replace(destination=places.get(str(form.destination), form.destination))
    return form._replace(path=places.get(str(form.path), form.path))


def _paths(document: Document) -> list[str]:
    """All paths that a document writes, each once."""
    paths = [change.path for change in document.changes]
    paths += [change.to for change in document.changes if isinstance(change, MoveChange)]
    return list(dict.fromkeys(paths))
