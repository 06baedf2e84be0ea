"""The edits of one answer as one change set: decided, shown and asked about together, made all or none."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from handrail.changes.apply import applying
from handrail.changes.change_set import ChangeSet, FileEdit, Origin
from handrail.changes.forms import Form
from handrail.changes.proposal import Proposed, propose
from handrail.changes.shown import Shown
from handrail.protocol.errors import PathProblem, ToolError
from handrail.protocol.values import ToolCall, Value
from handrail.tools.base import About, Outcome, Tool, Work
from handrail.tools.editing import (
    Changing,
    ChangingArguments,
    diagnostics,
    mutation_of,
    outcome_of,
    refuse_marks,
)
from handrail.tools.proposing import preview

TOGETHER = "changes"


class Tools(Protocol):
    """The tools that calls may name."""

    def find(self, name: str) -> Tool[Any] | None: ...


class Member(NamedTuple):
    """One call of the set, read and with its place."""

    tool: Changing[Any]
    arguments: ChangingArguments
    work: Work

    @property
    def form(self) -> Form:
        return self.tool.checked_form(self.arguments, self.work)


class ChangeTogether(Tool[Value]):
    """Stands for several calls where the gate decides about one."""

    name = TOGETHER
    description = "The changes of one answer."
    action = "write"
    arguments = Value

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = tuple(members)
        self.at_fault: int | None = None
        """The number of the call with which the set was refused; None where it was no single one."""

    def about(self, arguments: Value) -> About:
        abouts = [member.tool.about(member.arguments) for member in self._members]
        first, *others = dict.fromkeys(path for about in abouts for path in (about.path or "", *about.others))
        return About(path=first, others=tuple(others))

    def subject(self, arguments: Value, work: Work) -> dict[str, Any]:
        return {"paths": [str(place.absolute) for place in (work.decided, *work.others)]}

    def summary(self, arguments: Value, work: Work) -> str:
        paths = dict.fromkeys(member.work.decided.path for member in self._members)
        return next(iter(paths)) if len(paths) == 1 else f"{len(paths)} files"

    def preview(self, arguments: Value, work: Work) -> str:
        return preview(self._proposed(work).edits)

    def confirmation(self, arguments: Value, work: Work) -> str:
        return self._proposed(work).confirm

    async def run(self, arguments: Value, work: Work) -> Outcome:
        return (await self.outcomes(work))[0]

    async def outcomes(self, work: Work) -> list[Outcome]:
        """Make the changes; what came of each call. The fact that they were made goes with the first."""
        proposed = self._proposed(work)
        notes = await diagnostics(self._members[0].tool.diagnosing, proposed, work)
        mutation = await mutation_of([member.arguments for member in self._members], proposed, work)
        # Without a wait from here on, a cancelled turn finds the changes made and recorded, or not begun.
        if proposed.confirm and not work.confirmed:
            raise PathProblem(f"{proposed.confirm}. Only the user can allow it.", "large_loss")
        turn = work.session.state.turn
        change_set = ChangeSet(
            proposed.edits,
            Origin(
                work.turn_id,
                work.call_id,
                model=turn.model if turn else "",
                mutation_class=mutation.mutation_class,
                mutation_problem=mutation.problem,
                todos=self._todos(),
            ),
            hard_links_agreed=any(place.links > 1 for place in (work.decided, *work.others)),
        )
        applied = work.held.enter_context(applying(work.session, work.workspace, change_set))
        left = {name: edit for edit in proposed.edits for name in (edit.path, edit.destination) if name}
        told: list[Outcome] = []
        for member in self._members:
            edit = left[member.work.decided.path]
            facts = () if told else (applied,)
            shown = not _is_told(edit, told)
            told.append(outcome_of(edit, *facts, shown=shown, notes=notes, mutation=mutation))
        return told

    def _todos(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(todo for member in self._members for todo in member.arguments.completes))

    def _proposed(self, work: Work) -> Proposed:
        state = work.session.state
        shown = Shown(state.files, state.turns)
        try:
            forms = [member.form for member in self._members]
            proposed = propose(work.workspace, shown, forms)
            for edit in proposed.edits:
                refuse_marks(edit, work.secrets)
        except PathProblem:
            self.at_fault = self._first_fault(work, shown)
            raise
        return proposed

    def _first_fault(self, work: Work, shown: Shown) -> int:
        """The first of the calls with which the set is refused."""
        for count in range(1, len(self._members)):
            try:
                propose(work.workspace, shown, [member.form for member in self._members[:count]])
            except PathProblem:
                return count - 1
        return len(self._members) - 1


def _is_told(edit: FileEdit, told: Sequence[Outcome]) -> bool:
    return bool(edit.diff.text) and any(outcome.shown == edit.diff.text for outcome in told)


def together(read: Sequence[tuple[Tool[Any], Any, Work]]) -> ChangeTogether:
    """One tool for calls that `groups` put together."""
    return ChangeTogether(
        [Member(tool, arguments, work) for tool, arguments, work in read if isinstance(tool, Changing)]
    )


def groups(calls: Sequence[ToolCall], tools: Tools) -> list[list[ToolCall]]:
    """The calls of an answer in their order, those that change files and follow one another together."""
    grouped: list[list[ToolCall]] = []
    changed = False
    for call in calls:
        changes = isinstance(tools.find(call.name), Changing)
        if changes and changed:
            grouped[-1].append(call)
        else:
            grouped.append([call])
        changed = changes
    return grouped


def because_of(fault: ToolError, call: ToolCall) -> ToolError:
    """What another call of a refused set is told."""
    message = (
        f"Not done: the changes of one answer are made together, and {fault.tool} {fault.file} was refused"
        f" ({fault.reason}). Correct that one, and send all of them again."
    )
    return ToolError(tool=call.name, reason="other_refused", message=message)
