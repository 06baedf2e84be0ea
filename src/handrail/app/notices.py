"""What the user is told when a workspace is opened."""

import os
from pathlib import Path

from handrail.storage.protected_copies import ProtectedCopies
from handrail.workspace.files import Workspace


def own_files_notice(workspace: Workspace) -> list[str]:
    """A line if the running Handrail is in the workspace."""
    names = [os.path.relpath(path, workspace.root) for path in workspace.program_paths]
    top = sorted({name for name in names if not any(name.startswith(f"{each}/") for each in names)})
    if not top:
        return []
    whole = top[0].startswith("..") or "." in top
    what = "This workspace is" if whole else f"{', '.join(top)} {'is' if len(top) == 1 else 'are'}"
    closed = "no edit or command can change it (nor, under Landlock, create a file beside it)"
    advice = "To work on it, run a Handrail that is installed in another environment."
    return [f"{what} part of the Handrail that is running: {closed}. {advice}"]


def restored_notice(log_folder: Path, root: Path) -> list[str]:
    """What the commands of a killed Handrail had changed."""
    if not ProtectedCopies(log_folder).in_use:
        return []
    from handrail.changes.protected.restore import restore_after_crash

    found = restore_after_crash(log_folder, root)
    copies = f"; what was there is in {found.quarantine}" if found.quarantine else ""
    ends = {
        f"restored{copies}": found.restored,
        "left as it is": found.left,
        "it COULD NOT be restored": found.failed,
    }
    what = "changed while a command ran and Handrail was killed"
    return [f"{', '.join(names)} {what}: {end}." for end, names in ends.items() if names]
