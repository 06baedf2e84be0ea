"""Remove a folder with everything in it, whatever a program made of it."""

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

LEVELS, MAX_DEPTH = 400, 100_000  # of folders in a folder that is removed


def remove_tree(folder: Path) -> None:
    """Remove the folder with everything in it, also what a program made read-only; nothing outside."""
    for _ in range(MAX_DEPTH // LEVELS):
        try:
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                _make_writable(folder)
                shutil.rmtree(folder, ignore_errors=True)
            return
        except RecursionError:  # a program made folders in folders, thousands of levels deep
            _flatten(folder)


def _flatten(folder: Path) -> None:
    """Move what is deeper than some levels to the top."""
    for top in [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]:
        place, levels = top, 0
        while levels < LEVELS and (below := _first_folder(place)):
            place, levels = below, levels + 1
        if levels == LEVELS:
            os.rename(place, tempfile.mkdtemp(dir=folder))


def _first_folder(folder: str) -> str:
    with suppress(OSError), os.scandir(folder) as entries:
        return next((entry.path for entry in entries if entry.is_dir(follow_symlinks=False)), "")
    return ""


def _make_writable(folder: Path) -> None:
    with suppress(OSError):
        folder.chmod(stat.S_IRWXU)
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                _make_writable(Path(entry.path))
