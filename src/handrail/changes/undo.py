"""Taking changes back: each file as it was before the first of them, unless somebody changed it since."""

from collections.abc import Sequence

from handrail.protocol.errors import PathProblem, StorageDamaged
from handrail.protocol.events import ChangeApplied, ChangePrepared
from handrail.protocol.ids import new_id
from handrail.protocol.values import FileChange
from handrail.sessions.handle import Session
from handrail.workspace.files import Workspace
from handrail.workspace.writer import create_file, remove_file, replace_file


def undo(
    session: Session, workspace: Workspace, changes: Sequence[ChangePrepared], turn_id: str
) -> list[str]:
    """Paths that could not be put back because they are no longer what the changes made of them."""
    left: list[str] = []
    for file in reversed(_net(changes)):
        if (workspace.sha256(file.path) or "") != file.old_sha256:
            left.append(file.path)
            continue
        prepared = ChangePrepared(turn_id=turn_id, change_id=new_id("c"), call_id="", files=(file,))
        session.append(prepared)
        try:
            _write(session, workspace, file, prepared.change_id)
        except PathProblem:
            left.append(file.path)
            continue  # changed in this very moment; the outcome is told by `recover` at the next start
        session.append(ChangeApplied(change_id=prepared.change_id))
    return left


def _net(changes: Sequence[ChangePrepared]) -> list[FileChange]:
    """One change a file that leads from what the changes made of it back to what it was."""
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for change in changes:
        for file in change.files:
            first.setdefault(file.path, file.old_sha256)
            last[file.path] = file.new_sha256
    return [
        FileChange(
            path=path,
            op="update" if before and last[path] else "delete" if last[path] else "create",
            old_sha256=last[path],
            new_sha256=before,
        )
        for path, before in first.items()
        if before != last[path]
    ]


def _write(session: Session, workspace: Workspace, file: FileChange, change_id: str) -> None:
    if file.op == "delete":
        remove_file(workspace.root, file.path, old_sha256=file.old_sha256)
        return
    data = session.log.blob(file.new_sha256)
    if data is None:
        raise StorageDamaged(f"What {file.path} was before is not kept any more: it is left as it is.")
    if file.op == "create":
        create_file(workspace.root, file.path, data, change_id=change_id)
    else:
        replace_file(workspace.root, file.path, data, old_sha256=file.old_sha256, change_id=change_id)
