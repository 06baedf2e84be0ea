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

TRACE = ".orchestration/agent_trace.jsonl"
"""Handrail itself appends to it while commands run: only what was there before is theirs to leave alone."""
BESIDE_TRACE = ".orchestration/.gitattributes"

Closed = dict[str, str]
"""What each of them holds, as a hash, by its path in the workspace."""
NONE: Closed = {}


def closed_files(ground: Ground, before: Closed = NONE) -> Closed:
    """The files as they are now, as many as take no time to read; the trace as far as it went before."""
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
            inside = str(path.relative_to(root))
            found[inside] = _trace_hash(path, before.get(TRACE, "")) if inside == TRACE else _hash(path)
    return found


def changed_files(before: Closed, after: Closed) -> list[str]:
    """Which of them were made, changed or removed."""
    begun = {TRACE, BESIDE_TRACE} if TRACE not in before and TRACE in after else set()
    names = (before.keys() | after.keys()) - (begun - before.keys())
    return sorted(name for name in names if before.get(name) != after.get(name))


def _files(path: Path, depth: int) -> Iterator[Path]:
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            yield path
        elif depth:
            for entry in sorted(os.scandir(path), key=lambda each: each.name):
                yield from _files(Path(entry.path), depth - 1)
    except OSError:
        return


def _trace_hash(path: Path, before: str) -> str:
    """The hash of the trace as far as it went before, or goes now, with how far that is."""
    try:
        found = os.lstat(path)
        size = int(before.rpartition(" ")[2]) if before.startswith("trace ") else found.st_size
        if not stat.S_ISREG(found.st_mode) or found.st_size < size:
            return _hash(path)
        with path.open("rb") as file:
            file.seek(max(0, size - MOST_BYTES))
            held = hashlib.sha256(file.read(min(size, MOST_BYTES))).hexdigest()
        return f"trace {found.st_mode:o} {held} {size}"
    except OSError as error:
        return f"unreadable {error.errno}"


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
