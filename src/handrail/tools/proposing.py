"""Several changes as one call, all or none. No model is offered it: it is for what a person hands in."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from handrail.changes.apply import applying
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.changes.document import DeleteChange, Document, MoveChange, form_of
from handrail.changes.forms import Form, Move
from handrail.changes.proposal import Proposed, propose, refuse_link
from handrail.changes.shown import Shown
from handrail.policy.intents import PROPOSAL
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Mode
from handrail.tools.base import About, Outcome, Tool, Work
from handrail.tools.mutation import classify
from handrail.workspace.files import Workspace
from handrail.workspace.places import Place

NOT_DECIDED: Mapping[str, Place] = MappingProxyType({})


class ApplyProposal(Tool[Document]):
    name = PROPOSAL
    description = "Apply changes that somebody wrote down."
    action = "write"
    arguments = Document

    def about(self, arguments: Document) -> About:
        first, *others = paths_of(arguments)
        return About(path=first, others=tuple(others))

    def summary(self, arguments: Document, work: Work) -> str:
        paths = list(dict.fromkeys(change.path for change in arguments.changes))
        return paths[0] if len(paths) == 1 else f"{len(paths)} files"

    def preview(self, arguments: Document, work: Work) -> str:
        return preview(proposed(work.workspace, arguments, decided(arguments, work)).edits)

    def confirmation(self, arguments: Document, work: Work) -> str:
        return proposed(work.workspace, arguments, decided(arguments, work)).confirm

    async def run(self, arguments: Document, work: Work) -> Outcome:
        found = proposed(work.workspace, arguments, decided(arguments, work))
        if found.confirm and not work.confirmed:
            raise PathProblem(f"{found.confirm}. Only the user can allow it.", "large_loss")
        mutation = await classify([arguments.mutation_class], found.edits, work.workspace)
        origin = Origin(
            work.turn_id,
            work.call_id,
            by="user",
            intent=arguments.summary,
            mutation_class=mutation.mutation_class,
            mutation_problem=mutation.problem,
        )
        links = max(place.links for place in (work.decided, *work.others))
        change_set = ChangeSet(found.edits, origin, hard_links_agreed=links > 1)
        applied = work.held.enter_context(applying(work.session, work.workspace, change_set))
        files = f"{len(found.edits)} file{'s' * (len(found.edits) != 1)}"
        counts = f"{files}, +{change_set.added} -{change_set.removed}"
        counts += f", {mutation.problem or 'refactor'}" if mutation.told else ""
        return Outcome(counts, applied.change_id, shown=preview(found.edits), events=(applied,))


class ProposalTools:
    """The only tool where a proposal is applied."""

    def __init__(self) -> None:
        self._tool = ApplyProposal()

    def find(self, name: str) -> Tool[Any] | None:
        return self._tool if name == PROPOSAL else None

    def names(self, mode: Mode) -> list[str]:
        return [PROPOSAL]


def proposed(workspace: Workspace, document: Document, places: Mapping[str, Place] = NOT_DECIDED) -> Proposed:
    """What a document asks for; raises PathProblem for all of it where a part is refused.

    `places` are where its paths led when they were decided about.
    """
    for change in document.changes:
        if isinstance(change, DeleteChange | MoveChange):
            refuse_link(workspace, change.path)
    forms = [_placed(form_of(change), places) for change in document.changes]
    return propose(workspace, Shown(seen=None), forms)


def paths_of(document: Document) -> list[str]:
    """All paths that a document writes, each once."""
    paths = [change.path for change in document.changes]
    paths += [change.to for change in document.changes if isinstance(change, MoveChange)]
    return list(dict.fromkeys(paths))


def decided(document: Document, work: Work) -> dict[str, Place]:
    """Where the paths of a document led when the call was decided."""
    return dict(zip(paths_of(document), (work.decided, *work.others), strict=True))


def _placed(form: Form, places: Mapping[str, Place]) -> Form:
    if isinstance(form, Move):
        form = form._replace(destination=places.get(str(form.destination), form.destination))
    return form._replace(path=places.get(str(form.path), form.path))


def preview(edits: tuple[FileEdit, ...]) -> str:
    """All diffs, and the moves that have none."""
    return "\n".join(map(_shown, edits))


def _shown(edit: FileEdit) -> str:
    moved = f"move {edit.path} to {edit.destination}" if edit.destination else ""
    changed = edit.diff.text if edit.diff.added or edit.diff.removed or not moved else ""
    return "\n".join(part for part in (moved, changed) if part)
