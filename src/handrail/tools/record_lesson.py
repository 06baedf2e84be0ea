"""The tool record_lesson: one more line at the end of the notes file that agents read first."""

import os
import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from handrail.config.settings import LessonSettings
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value
from handrail.tools.tool import CallContext, CallTarget, Outcome, Prepared, Tool
from handrail.workspace.paths import without_case

NOTES_FILES = ("AGENTS.md", "CLAUDE.md")
MAX_BYTES = 64_000
REPEATED_CHARS = 60
MARKS = "#>-*+=|~`_ \t"
"""A line of Markdown that begins with one of these may be something other than a sentence."""


class LessonArguments(Value):
    lesson: Annotated[str, Meta(min_length=1, max_length=300)]
    context: Annotated[str, Meta(max_length=300)] = ""


class RecordLesson(Tool[LessonArguments]):
    name = "record_lesson"
    description = "Save a lesson for later sessions, in one sentence."
    action = "write"
    arguments = LessonArguments

    def __init__(self, root: Path, settings: LessonSettings) -> None:
        self._root = root
        self._settings = settings

    def target(self, arguments: LessonArguments) -> CallTarget:
        return CallTarget(path=self._file())

    def prepare(self, arguments: LessonArguments, work: CallContext) -> Prepared:
        from datetime import UTC, datetime

        from handrail.changes.forms.edit_forms import Whole
        from handrail.changes.proposal import ShownVersions, refuse_link
        from handrail.tools.files.edit_batch import prepare_edits

        place = work.resolved
        refuse_link(work.workspace, place.path if place.inside else self._file())
        refuse_link(work.workspace, self._file())
        if not one_line(arguments.lesson):
            raise PathProblem("The lesson is empty. Write one sentence.", "invalid_arguments", place.path)
        file = work.workspace.read(place) if work.workspace.exists(place) else None
        text = file.text if file else ""
        if len(text.encode()) > MAX_BYTES:
            message = f"{place.path} is too long for more lessons. Ask the user to shorten it."
            raise PathProblem(message, "too_large", place.path)
        day = datetime.now(UTC).date().isoformat()
        new = add_lesson(text, arguments.lesson, arguments.context, day, self._settings.section)
        if new == text:
            raise PathProblem(
                f"{place.path} already has this lesson of today.", "already_applied", place.path
            )
        form = Whole(place, new, file.sha256 if file else "")
        return prepare_edits(work.workspace, [form], ShownVersions(seen=None), work.secrets)

    def is_current(self, arguments: LessonArguments, work: CallContext) -> bool:
        from handrail.tools.files.edit_batch import files_unchanged

        return files_unchanged(work)

    async def run(self, arguments: LessonArguments, work: CallContext) -> Outcome:
        from handrail.changes.change_set import Origin
        from handrail.tools.files.edit_batch import apply_prepared

        turn = work.session.state.turn
        origin = Origin(work.turn_id, work.call_id, model=turn.model if turn else "", intent="a lesson")
        applied = await apply_prepared(work, origin)
        path = work.resolved.path
        return Outcome(path, f"Added to {path}.", shown=work.prepared.preview, events=(applied,))

    def _file(self) -> str:
        """The file of the settings; if there is none, the notes file that the workspace has."""
        return self._settings.file or notes_file(self._root)


def notes_file(root: Path) -> str:
    """The notes file that the workspace has, in any case; AGENTS.md where it has none."""
    found: dict[str, str] = {}
    with suppress(OSError):
        found = {without_case(name): name for name in os.listdir(root)}
    names = (found[without_case(name)] for name in NOTES_FILES if without_case(name) in found)
    return next(names, NOTES_FILES[0])


def add_lesson(text: str, lesson: str, context: str, day: str, section: str) -> str:
    """The text with one more entry; for a lesson that it already has, only the day is added, once."""
    lesson, context, heading = one_line(lesson), one_line(context), f"## {one_line(section)}"
    known = re.compile(rf"- [\d-]+: {re.escape(lesson)}( \(.*\))?", re.IGNORECASE)
    lines = [line.rstrip() for line in text.splitlines()]
    entry = f"- {day}: {lesson}{f' ({context})' if context else ''}"
    if any(map(known.fullmatch, lines)):
        entry = f"- again: {day} ({lesson[:REPEATED_CHARS].rstrip()})"
        if entry in lines:
            return text
    headings = [line.strip() for line in lines if line.startswith("#")]
    before = text if not text or text.endswith("\n") else f"{text}\n"
    if headings[-1:] != [heading]:
        before = f"{before}\n{heading}\n\n" if before else f"{heading}\n\n"
    return f"{before}{entry}\n"


def one_line(text: str) -> str:
    """The text as one plain sentence: no control characters, no tags, no Markdown block."""
    plain = "".join(" " if unicodedata.category(each)[0] in "CZ" else each for each in text)
    plain = plain.replace("```", "'").replace("<", "&lt;").replace("](", "] (")
    return " ".join(plain.split()).lstrip(MARKS)
