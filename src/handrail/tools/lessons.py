"""The tool that keeps what was learnt, for whoever works here next."""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value
from handrail.tools.base import About, Outcome, Tool, Work
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.changes.proposal import Proposed

AGENTS, CLAUDE = "AGENTS.md", "CLAUDE.md"
MOST_BYTES = 64_000
Sentence = Annotated[str, Field(min_length=1, max_length=300)]


class LessonArguments(Value):
    lesson: Sentence
    context: Annotated[str, Field(max_length=300)] = ""


class RecordLesson(Tool[LessonArguments]):
    name = "record_lesson"
    description = "Keep a lesson for later sessions: one sentence, and when it applies."
    action = "write"
    arguments = LessonArguments

    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root

    def about(self, arguments: LessonArguments) -> About:
        return About(path=self._file())

    def preview(self, arguments: LessonArguments, work: Work) -> str:
        return self._proposed(arguments, work).edits[0].diff.text

    async def run(self, arguments: LessonArguments, work: Work) -> Outcome:
        from handrail.changes.apply import applying
        from handrail.changes.change_set import ChangeSet, Origin

        proposed = self._proposed(arguments, work)
        turn = work.session.state.turn
        origin = Origin(work.turn_id, work.call_id, model=turn.model if turn else "", intent="a lesson")
        change_set = ChangeSet(proposed.edits, origin, hard_links_agreed=work.decided.links > 1)
        applied = work.held.enter_context(applying(work.session, work.workspace, change_set))
        path, diff = work.decided.path, proposed.edits[0].diff
        return Outcome(path, f"Added to {path}.", shown=diff.text, events=(applied,))

    def _file(self) -> str:
        """The file that agents read here; where there is none, the one that most of them read."""
        there = [name for name in (AGENTS, CLAUDE) if os.path.lexists(self._root / name)]
        return there[0] if there else AGENTS

    def _proposed(self, arguments: LessonArguments, work: Work) -> "Proposed":
        from handrail.changes.forms import Whole
        from handrail.changes.lessons import one_line, with_lesson
        from handrail.changes.proposal import propose, refuse_link
        from handrail.changes.shown import Shown

        place = work.decided
        refuse_link(work.workspace, place.path if place.inside else self._file())
        refuse_link(work.workspace, self._file())
        if not one_line(arguments.lesson):
            raise PathProblem("The lesson has no words.", "invalid_arguments", place.path)
        file = work.workspace.read(place) if work.workspace.exists(place) else None
        text = file.text if file else ""
        if len(text.encode()) > MOST_BYTES:
            message = f"{place.path} is too long for more lessons: ask the user to shorten it."
            raise PathProblem(message, "too_large", place.path)
        day = datetime.now(UTC).date().isoformat()
        new = with_lesson(text, arguments.lesson, arguments.context, day)
        return propose(work.workspace, Shown(seen=None), [Whole(place, new, file.sha256 if file else "")])
