"""Write the intent files: all or nothing, never over what somebody else wrote."""

from handrail.changes.change_set import sha256
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import Event, IntentEdited
from handrail.protocol.ids import new_id
from handrail.sessions.workspace_events import append_to_workspace
from handrail.storage.event_log import Log
from handrail.storage.protected_copies import own_write
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.file_step import FileStep
from handrail.workspace.files import Workspace
from handrail.workspace.writer import Writer


def write_intent_file(
    log: Log,
    workspace: Workspace,
    path: str,
    *,
    old: bytes | None,
    new: bytes,
    edits: tuple[Event, ...] = (),
    disk: Disk = DISK,
) -> None:
    """Replace a file that must hold `old`; the log has the edits first. Raises PathProblem, OSError."""
    writer = Writer(workspace.root, disk)
    if workspace.resolve(path).absolute != workspace.root / path:
        raise PathProblem(f"{path} is reached by a link: change the file itself.", "protected_path", path)
    with own_write(log.folder, {path: new}):
        found = writer.look(path)
        if found.sha256 != sha256(old):
            raise PathProblem(f"Somebody else just changed {path}. Try again.", "stale_file", path)
        writer.make_folders(writer.missing_folders(path))
        step = FileStep(path, found.sha256, sha256(new), found.mode, found.mode, mark=new_id("i"))
        try:
            writer.put(step, new, found.mode)
            if edits:
                append_to_workspace(log, *edits)
            _forward(log, writer, step, edits)
        except BaseException:
            writer.discard(step)
            raise
        writer.sync([path])
        writer.tidy(step)


def _forward(log: Log, writer: Writer, step: FileStep, edits: tuple[Event, ...]) -> None:
    try:
        writer.forward(step)
    except (PathProblem, OSError):
        if writer.look(step.path).sha256 == step.new:
            return  # the content is in place; only a later part failed
        undone = tuple(
            IntentEdited(intent_id=each.intent_id, old=each.new, new=each.old, why="could not be written")
            for each in edits
            if isinstance(each, IntentEdited)
        )
        if undone:
            append_to_workspace(log, *undone)
        raise
