"""The edit and write tools: both only propose; `changes` checks and writes."""

from abc import abstractmethod
from typing import Annotated, Any

from pydantic import Field

from handrail.changes.apply import apply
from handrail.changes.matching import Edit
from handrail.changes.proposal import Proposal, Replace, Whole, propose
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import SHOWN_DIGITS, Value
from handrail.tools.base import About, Arguments, Outcome, Tool, Work
from handrail.workspace.places import Place

MOST_EDITS = 100
Hash = Annotated[str, Field(description="hash shown by read")]
TodoId = Annotated[str, Field(description="id of the todo this completes")]


class EditItem(Value):
    search: str
    replace: str


class EditArguments(Value):
    path: str
    edits: Annotated[tuple[EditItem, ...], Field(min_length=1, max_length=MOST_EDITS)]
    base_hash: Hash = ""
    todo: TodoId = ""


class WriteArguments(Value):
    path: str
    text: str
    base_hash: Hash = ""
    todo: TodoId = ""


class Changing(Tool[Arguments]):
    """What both tools share: the preview is the diff, running is applying."""

    action = "write"

    @abstractmethod
    def form(self, arguments: Arguments, place: Place) -> Replace | Whole:
        """What the arguments ask of `changes`."""

    def subject(self, arguments: Arguments, work: Work) -> dict[str, Any]:
        return {"path": super().subject(arguments, work)["path"]}

    def preview(self, arguments: Arguments, work: Work) -> str:
        return self._proposal(arguments, work).diff.text

    async def run(self, arguments: Arguments, work: Work) -> Outcome:
        # Without a wait inside, a cancelled turn finds the change made and recorded, or not begun.
        proposal = self._proposal(arguments, work)
        applied = apply(work.session, work.workspace, proposal, turn_id=work.turn_id, call_id=work.call_id)
        change = proposal.change
        done = "Created" if change.op == "create" else "Changed"
        counts = f"+{change.added} -{change.removed}"
        digits = change.new_sha256[:SHOWN_DIGITS]
        return Outcome(
            summary=counts,
            content=f"{done} {change.path} ({counts}). ### {change.path} [hash: {digits}]",
            shown=proposal.diff.text,
            events=(applied,),
        )

    def _proposal(self, arguments: Arguments, work: Work) -> Proposal:
        proposal = propose(work.workspace, work.session.state.files, self.form(arguments, work.decided))
        for mark in work.secrets.marks_in(proposal.new.decode()):
            if mark.encode() not in proposal.old:
                raise PathProblem(
                    f"{mark} stands for a value that is not shown: it cannot be written to {proposal.path}."
                    " Change other lines, or ask the user to do it.",
                    "protected_path",
                    proposal.path,
                )
        return proposal


class EditFile(Changing[EditArguments]):
    name = "edit"
    description = "Replace text in a file you have read. Each search must match exactly once."
    arguments = EditArguments

    def about(self, arguments: EditArguments) -> About:
        return About(path=arguments.path, todo=arguments.todo)

    def form(self, arguments: EditArguments, place: Place) -> Replace:
        edits = tuple(Edit(edit.search, edit.replace) for edit in arguments.edits)
        return Replace(place, edits, arguments.base_hash)


class WriteFile(Changing[WriteArguments]):
    name = "write"
    description = "Create a file, or rewrite one you have read whole."
    arguments = WriteArguments

    def about(self, arguments: WriteArguments) -> About:
        return About(path=arguments.path, todo=arguments.todo)

    def form(self, arguments: WriteArguments, place: Place) -> Whole:
        return Whole(place, arguments.text, arguments.base_hash)
