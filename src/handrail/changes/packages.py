"""Repeat in the workspace what commands changed in the layers of a build: folders of installed packages.

Git does not track these files, so they are in no change set and no undo. All new contents are first written
to a folder inside, from which they then take their places. After a crash in between, it is called again.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath

from handrail.config.remove_tree import remove_tree
from handrail.protocol.errors import PathProblem, StorageProblem
from handrail.workspace.paths import open_folder
from handrail.workspace.scratch_copy.clone_file import NotCopied, copy_entry
from handrail.workspace.scratch_copy.layers import LayerChanges, Layers, digest

STAGING = ".handrail-new"


def repeat_in_workspace(root: Path, layers: Layers) -> tuple[LayerChanges, ...]:
    """Make the workspace's folders equal to the layers; what was done.

    Raises PathProblem where somebody else has changed one of these files, and StorageProblem where they
    cannot be written: then all are as they were.
    """
    found = [each for each in layers.changes() if each]
    for changes in found:
        _check(root / changes.path, layers.tree(changes.path), changes)
    try:
        for changes in found:
            _stage(root, changes, layers.tree(changes.path))
    except (OSError, NotCopied) as error:
        why = error.strerror if isinstance(error, OSError) else error
        message = f"Installed packages cannot be changed: {why}. They are as they were."
        raise StorageProblem(message) from error
    else:
        _put_in_place(root, found)
    finally:
        for changes in found:
            remove_tree(root / changes.path / STAGING)
    return tuple(found)


def _check(inside: Path, tree: Path, changes: LayerChanges) -> None:
    """Every file is as it was when the layer was made, or as it will be."""
    before = {**dict.fromkeys(changes.added, ""), **changes.changed, **changes.removed}
    for path, old in before.items():
        if digest(inside, path) not in (old, digest(tree, path)):
            message = f"{changes.path}/{path} was changed by somebody else meanwhile. Start the build again."
            raise PathProblem(message, "stale_file", f"{changes.path}/{path}")


def _stage(root: Path, changes: LayerChanges, tree: Path) -> None:
    staging = root / changes.path / STAGING
    remove_tree(staging)  # of a process that was killed
    for path in (*changes.added, *changes.changed):
        folder, _, name = path.rpartition("/")
        with (
            open_folder(tree / folder, root=tree) as source,
            open_folder(staging / folder, make=True, root=root) as target,
        ):
            link = stat.S_ISLNK(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode)
            copy_entry(name, link=link, source=source, target=target)


def _put_in_place(root: Path, found: list[LayerChanges]) -> None:
    try:
        for changes in found:
            inside = root / changes.path
            for path in (*changes.added, *changes.changed):
                folder, _, name = path.rpartition("/")
                with (
                    open_folder(inside / STAGING / folder, root=inside) as source,
                    open_folder(inside / folder, make=True, root=inside) as target,
                ):
                    os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
            for path in changes.removed:
                where = PurePosixPath(path)
                with suppress(FileNotFoundError), open_folder(inside / where.parent, root=inside) as target:
                    os.unlink(where.name, dir_fd=target)
    except OSError as error:
        names = " and ".join(changes.path for changes in found)
        message = (
            f"Installed packages were changed only in part: {error.strerror}. Install those of {names} again"
        )
        raise StorageProblem(f"{message} with the project's own tool.") from error
