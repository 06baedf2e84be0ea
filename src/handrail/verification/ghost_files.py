"""Files that nobody planned: untracked, not ignored, and made by no change set."""

import os
import stat
from collections.abc import Collection
from pathlib import Path

from handrail.config.open_file import read_file
from handrail.tools.reports.issue import Issue
from handrail.workspace.git_index import MAX_INDEX_BYTES, DamagedIndex, find_index, tracked_paths
from handrail.workspace.paths import printable
from handrail.workspace.sensitive_names import is_protected_name
from handrail.workspace.stat_index import snapshot

MAX_ISSUES = 100


class TrackedUnknown(Exception):
    """Which files git tracks cannot be read; the message says why."""


def find_ghost_files(
    root: Path, expected: Collection[str], repository: Path | None = None
) -> tuple[Issue, ...]:
    """An issue for each untracked file in `root` that is not expected; raises TrackedUnknown.

    Expected are the files that were there before the change, that the plan names, or that a change set made:
    paths from the root; a folder ends with a slash. `repository` is the folder that git knows the tree by, if
    the tree is a copy of it. Git is not run.
    """
    tracked = _tracked(repository or root)
    folders = tuple(path for path in expected if path.endswith("/"))
    wanted = frozenset(expected)
    issues = []
    for path, told in sorted(snapshot(root).files.items()):
        known = path in tracked or path in wanted or path.startswith(folders)
        if known or not stat.S_ISREG(told.mode) or any(map(is_protected_name, path.split("/"))):
            continue
        message = "this file is not tracked, and neither a plan nor a change set made it"
        fix = "Delete it, add it to .gitignore, or add it to git."
        issues.append(Issue("ghost", "medium", message, printable(path), rule="ghost-file", fix=fix))
    return tuple(issues[:MAX_ISSUES])


def _tracked(repository: Path) -> set[str]:
    place = find_index(Path(os.path.realpath(repository)))
    if place is None:
        raise TrackedUnknown(f"{repository} is not in a git repository")
    index, prefix = place
    try:
        return tracked_paths(read_file(index, MAX_INDEX_BYTES), prefix)
    except FileNotFoundError:
        return set()  # nothing was added yet
    except (OSError, DamagedIndex) as error:
        raise TrackedUnknown(f"git's index cannot be read: {error}") from error
