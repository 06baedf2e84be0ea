"""What a change set means for the disk: the steps of its event, the same for whoever takes or undoes them."""

from collections.abc import Iterator

from handrail.protocol.events import ChangePrepared
from handrail.workspace.found import Step


def steps_of(prepared: ChangePrepared) -> list[Step]:
    """One step a path; a move is a new file and the end of the old one."""
    return list(_steps(prepared))


def _steps(prepared: ChangePrepared) -> Iterator[Step]:
    for number, file in enumerate(prepared.files):
        mark = f"{prepared.change_id}-{number}"
        if file.op == "move":
            yield Step(file.destination, "", file.new_sha256, None, file.new_mode, f"{mark}n", like=file.path)
            yield Step(file.path, file.old_sha256, "", file.old_mode, None, f"{mark}o")
        else:
            like = file.path if file.old_sha256 and file.new_sha256 else ""
            yield Step(
                file.path, file.old_sha256, file.new_sha256, file.old_mode, file.new_mode, mark, like=like
            )
