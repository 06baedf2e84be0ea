"""What a model has to know about files that an editor has open: unsaved text, and what it made of an edit."""

from collections.abc import Sequence

from msgspec.structs import replace

from handrail.changes.change_set import FileEdit
from handrail.changes.diff import diff
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeApplied
from handrail.tools.tool import CallContext, truncate
from handrail.workspace.editor import MAX_KNOWN, look
from handrail.workspace.files import decode

UNSAVED_READ = "[This is the editor's text, which is not saved: commands and checks see the file on disk.]"
UNSAVED_EDIT = "[The editor has not saved it: commands and checks still see the file as it was on disk.]"
UNSAVED_SEEN = "[Not saved in the editor, so that this saw the files on disk: {}.]"
CHANGED = "[The editor changed the text as it wrote it, as formatters do:]"
MAX_CHANGED = 8_000
MAX_NAMED = 10


def as_written(edits: Sequence[FileEdit], applied: ChangeApplied, work: CallContext) -> list[FileEdit]:
    """The edits with the texts that the editor made of them; its version of an edit is the one on record."""
    prepared = work.session.state.files.prepared.get(applied.change_id)
    recorded = {file.path: file.new_sha256 for file in prepared.files} if prepared else {}
    made = []
    for edit in edits:
        sha = recorded.get(edit.path, edit.new_sha256)
        text = work.session.log.blob(sha) if sha != edit.new_sha256 else None
        if text is None:
            made.append(edit)
        else:
            old = None if edit.old is None else decode(edit.old).text
            made.append(replace(edit, new=text, diff=diff(edit.path, old, decode(text).text)))
    return made


def edit_note(asked: FileEdit, made: FileEdit, work: CallContext) -> str:
    """What the editor did other than asked; empty for an edit that is saved as it was asked for."""
    notes = []
    if asked.new is not None and made.new is not None and asked.new != made.new:
        shown = diff(asked.path, decode(asked.new).text, decode(made.new).text).text
        notes.append(f"{CHANGED}\n{truncate(shown, MAX_CHANGED, 'Read the file before you edit it again.')}")
    if made.path in work.workspace.unsaved:
        notes.append(UNSAVED_EDIT)
    return "\n".join(notes)


async def unsaved_note(work: CallContext) -> str:
    """Which of the files that the model knows have text that a command or a search does not see."""
    workspace = work.workspace
    if workspace.editor is None:
        return ""
    known = [*list(work.session.state.files.files)[-MAX_KNOWN:], *workspace.unsaved]
    try:
        await look(workspace, work.session.id, known)
    except PathProblem as problem:
        return f"[Whether there is unsaved text in the editor is not known: {problem}]"
    if not workspace.unsaved:
        return ""
    names = sorted(workspace.unsaved)
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return UNSAVED_SEEN.format(", ".join(names[:MAX_NAMED]) + more)
