"""Writing the files of intents: at once or not at all, never over what somebody else has written since."""

from handrail.changes.change_set import sha256
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import Event, IntentEdited
from handrail.protocol.ids import new_id
from handrail.sessions.workspace_events import append_to_workspace
from handrail.storage.log import Log
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.files import Workspace
from handrail.workspace.found import Step
from handrail.workspace.writer import Writer


def write_intents(
    log: Log,
    workspace: Workspace,
    path: str,
    *,
    old: bytes | None,
    new: bytes,
    edits: tuple[Event, ...] = (),
    disk: Disk = DISK,
) -> None:
    """Replace a file that must hold `old`; the edits are in the log before. Raises PathProblem, OSError."""
    writer = Writer(workspace.root, disk)
    place = workspace.resolve(path)
    if place.absolute != workspace.root / path:
        raise PathProblem(f"{path} is reached by a link: change the file itself.", "protected_path", path)
    found = writer.look(path)
    if found.sha256 != sha256(old):
        raise _changed(path)
    writer.make_folders(writer.missing_folders(path))
    step = Step(path, found.sha256, sha256(new), found.mode, found.mode, mark=new_id("i"))
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


def _forward(log: Log, writer: Writer, step: Step, edits: tuple[Event, ...]) -> None:
    try:
        writer.forward(step)
    except (PathProblem, OSError):
        if writer.look(step.path).sha256 == step.new:
            return  # it is there; what failed is what comes after
        undone = tuple(
            IntentEdited(intent_id=each.intent_id, old=each.new, new=each.old, why="could not be written")
            for each in edits
            if isinstance(each, IntentEdited)
        )
        if undone:
            append_to_workspace(log, *undone)
        raise


def _changed(path: str) -> PathProblem:
    return PathProblem(f"{path} was changed by somebody else just now. Try again.", "stale_file", path)
