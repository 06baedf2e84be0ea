"""Entries of a folder and of the folders below it, nearest level first. Links are named, never followed."""

import os
import stat
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from handrail.workspace.places import printable

UNSEEN = {".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
"""Folders that are named, and not entered."""
SCANNED = 50_000
"""Names looked at in one folder."""


class Entry(NamedTuple):
    path: str
    """Relative to the folder that was asked about."""
    kind: str
    """`file`, `folder`, `link` or `other`."""
    size: int = 0
    target: str = ""
    """Where a link points."""


def walk(folder: Path, depth: int, most: int) -> list[Entry]:
    """Up to `most` entries; raises OSError when the folder itself cannot be listed."""
    return list(islice(_walk(folder, depth), most))


def _walk(folder: Path, depth: int) -> Iterator[Entry]:
    waiting = deque([(folder, "", depth)])
    while waiting:
        current, prefix, left = waiting.popleft()
        try:
            names = _names(current)
        except OSError:
            if not prefix:
                raise
            continue
        for name in names:
            entry = _entry(current, name)
            yield entry._replace(path=prefix + entry.path)
            if entry.kind == "folder" and left > 1 and name not in UNSEEN:
                waiting.append((current / name, f"{prefix}{entry.path}/", left - 1))


def _names(folder: Path) -> list[str]:
    with os.scandir(folder) as found:
        return sorted(islice((item.name for item in found), SCANNED))


def _entry(folder: Path, name: str) -> Entry:
    path, shown = folder / name, printable(name)
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return Entry(shown, "link", target=printable(os.readlink(path)))
    except OSError:
        return Entry(shown, "other")
    if stat.S_ISDIR(found.st_mode):
        return Entry(shown, "folder")
    if stat.S_ISREG(found.st_mode):
        return Entry(shown, "file", found.st_size)
    return Entry(shown, "other")
