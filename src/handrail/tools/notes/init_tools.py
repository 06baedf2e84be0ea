"""The tools of `/init`, for code alone: survey the repository, and write its notes file."""

from anyio.to_thread import run_sync

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Value, to_json
from handrail.tools.notes.survey import survey
from handrail.tools.tool import CallContext, Outcome, Prepared, Tool, pluralize

NOT_FOR_MODELS = "This is for /init alone. Use read, list and write."


class SurveyArguments(Value):
    path: str = "."


class SurveyRepository(Tool[SurveyArguments]):
    name = "survey"
    description = "What the repository shows about itself."
    action = "look"
    arguments = SurveyArguments

    async def run(self, arguments: SurveyArguments, work: CallContext) -> Outcome:
        _refuse_models(work)
        found = await run_sync(survey, work.workspace, abandon_on_cancel=True)
        lines = pluralize(len(found.text.splitlines()), "line")
        return Outcome(f"{lines} for {found.path}", to_json(found._asdict()))


class NotesArguments(Value):
    path: str
    text: str
    """The whole file; for one that has a text already, what is added to its end."""
    base: str = ""
    """Hash of the version that was surveyed; empty: there was none."""


class WriteNotes(Tool[NotesArguments]):
    """Writes a new notes file, or adds to the end of one; nothing in it is removed."""

    name = "write_notes"
    description = "Write the notes file."
    action = "write"
    arguments = NotesArguments

    def prepare(self, arguments: NotesArguments, work: CallContext) -> Prepared:
        from handrail.changes.forms.edit_forms import Whole
        from handrail.changes.proposal import ShownVersions, refuse_link
        from handrail.tools.files.edit_batch import prepare_edits

        _refuse_models(work)
        place = work.resolved
        refuse_link(work.workspace, arguments.path)
        file = work.workspace.read(place) if work.workspace.exists(place) else None
        if (file.sha256 if file else "") != arguments.base:
            message = f"{place.path} has changed since the repository was surveyed. Send /init again."
            raise PathProblem(message, "stale_file", place.path)
        added = f"{arguments.text.strip()}\n"
        if file and file.text.strip():
            added = f"{file.text.rstrip()}\n\n{added}"
        if file and "\r\n" in file.text:
            added = added.replace("\r\n", "\n").replace("\n", "\r\n")
        form = Whole(place, added, arguments.base)
        return prepare_edits(work.workspace, [form], ShownVersions(seen=None), work.secrets)

    def is_current(self, arguments: NotesArguments, work: CallContext) -> bool:
        from handrail.tools.files.edit_batch import files_unchanged

        return files_unchanged(work)

    async def run(self, arguments: NotesArguments, work: CallContext) -> Outcome:
        from handrail.changes.change_set import Origin
        from handrail.tools.files.edit_batch import apply_prepared

        applied = await apply_prepared(work, Origin(work.turn_id, work.call_id, intent="notes for agents"))
        path = work.resolved.path
        return Outcome(path, f"Wrote {path}.", shown=work.prepared.preview, events=(applied,))


def _refuse_models(work: CallContext) -> None:
    if not work.by_code:
        raise PathProblem(NOT_FOR_MODELS, "unknown_tool", "")
