"""Files of a workspace as interfaces need them: names to complete, and text to show."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.protocol.errors import PathProblem

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.workspace.files import TextFile

ENTRIES_LOOKED_AT = 2000
ENTRIES_WALKED = 5000
ENTRIES_SHOWN = 50
SKIPPED_FOLDERS = {".git", "__pycache__", "node_modules", ".venv"}


def read_file(app: "App", path: str) -> "TextFile":
    """A text file of the workspace; raises PathProblem for any other, and for one that may hold secrets."""
    place = app.workspace.resolve(path)
    if not place.inside:
        raise PathProblem(f"{path} is not in this workspace.", "outside_workspace", path)
    if place.secret or place.in_state:
        message = f"{place.path} may hold secrets, so it is not shown. Open it in an editor."
        raise PathProblem(message, "protected_path", path)
    return app.workspace.read(place)


def find_files(app: "App", typed: str) -> list[str]:
    """Files that a message could mention, completed from what was typed."""
    root = app.workspace.root
    return list(complete_path(root, typed)) or find_below(root, typed)


def complete_path(workspace: Path, typed: str) -> Iterator[str]:
    """Entries of the folder being typed that start with the name being typed."""
    folder, _, start = typed.rpartition("/")
    parent = (workspace / folder).resolve()
    if not parent.is_relative_to(workspace):
        return
    found = []
    try:
        with os.scandir(parent) as entries:
            for _, entry in zip(range(ENTRIES_LOOKED_AT), entries, strict=False):
                hidden = entry.name.startswith(".") and not start.startswith(".")
                if entry.name.startswith(start) and not hidden and entry.name not in SKIPPED_FOLDERS:
                    found.append(entry.name + "/" * entry.is_dir())
    except OSError:
        return
    for name in sorted(found)[:ENTRIES_SHOWN]:
        yield f"{folder}/{name}" if folder else name


def find_below(workspace: Path, typed: str) -> list[str]:
    """Files in any folder whose name starts so, nearest first; stops early in a large workspace."""
    start = typed.lower()
    found: list[str] = []
    folders, left = [""], ENTRIES_WALKED
    while start and "/" not in start and folders and left > 0 and len(found) < ENTRIES_SHOWN:
        folder = folders.pop(0)
        try:
            with os.scandir(workspace / folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.name in SKIPPED_FOLDERS or entry.name.startswith("."):
                        continue
                    path = f"{folder}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{path}/")
                    elif entry.name.lower().startswith(start):
                        found.append(path)
                    if left <= 0:
                        break
        except OSError:
            continue
    return found[:ENTRIES_SHOWN]
