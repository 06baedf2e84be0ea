"""What is at a place and beside it, as far as a decision to write there needs it."""

import os
import stat
from pathlib import Path
from typing import Literal
from unicodedata import normalize

from handrail.protocol.record import Record

Found = Literal["nothing", "file", "folder", "other"]


class Surroundings(Record):
    found: Found
    missing: tuple[str, ...] = ()
    """Names at the end of the path that nothing has yet."""
    through_file: bool = False
    """What should be a folder on the way is none."""
    twin: str = ""
    """What is there in place of the first missing name and differs only in case or encoding."""
    twin_by: Literal["", "case", "encoding"] = ""


def look_around(absolute: Path) -> Surroundings:
    """What is found where a resolved path leads."""
    try:
        return Surroundings(_kind(os.lstat(absolute).st_mode))
    except OSError:
        pass
    names = [absolute.name]
    folder = absolute.parent
    while not os.path.lexists(folder) and folder != folder.parent:
        names.insert(0, folder.name)
        folder = folder.parent
    if not folder.is_dir():
        return Surroundings("nothing", tuple(names), through_file=True)
    twin = _twin(names[0], folder)
    by: Literal["", "case", "encoding"] = ""
    if twin:
        by = "encoding" if normalize("NFKC", twin) == normalize("NFKC", names[0]) else "case"
    return Surroundings("nothing", tuple(names), twin=twin, twin_by=by)


def _kind(mode: int) -> Found:
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def _twin(name: str, folder: Path) -> str:
    wanted = _alike(name)
    try:
        with os.scandir(folder) as entries:
            return next((entry.name for entry in entries if _alike(entry.name) == wanted), "")
    except OSError:
        return ""


def _alike(name: str) -> str:
    return normalize("NFKC", name).casefold()
