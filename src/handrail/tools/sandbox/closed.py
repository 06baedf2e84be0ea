"""Files that no command should change, looked at before and after one where the sandbox cannot close them."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from handrail.tools.sandbox.places import MAKES_GIT_RUN, Ground
from handrail.workspace.names import GIT, STATE_FILES, STATE_FOLDERS

MOST_FILES = 500
MOST_BYTES = 1_000_000
DEEPEST = 3

Closed = dict[str, str]
"""What each of them holds, as a hash, by its path in the workspace."""


def closed_files(ground: Ground) -> Closed:
    """The files as they are now, as many of them as take no time to read."""
    root, repositories = ground.workspace, (GIT, *ground.repositories)
    names = [
        *STATE_FOLDERS,
        *STATE_FILES,
        *(f"{git}/{name}" for git in repositories for name in MAKES_GIT_RUN),
    ]
    found: Closed = {}
    for name in names:
        for path in _files(root / name, DEEPEST):
            if len(found) == MOST_FILES:
                return found
            found[str(path.relative_to(root))] = _hash(path)
    return found


def changed_files(before: Closed, after: Closed) -> list[str]:
    """Which of them were made, changed or removed."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _files(path: Path, depth: int) -> Iterator[Path]:
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            yield path
        elif depth:
            for entry in sorted(os.scandir(path), key=lambda each: each.name):
                yield from _files(Path(entry.path), depth - 1)
    except OSError:
        return


def _hash(path: Path) -> str:
    """What tells one content from another; of what is large or no file, what the system says of it."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return f"link {os.readlink(path)}"
        if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES:
            return f"{found.st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        return f"{found.st_mode:o} {found.st_size} {found.st_mtime_ns}"
    except OSError as error:
        return f"unreadable {error.errno}"
