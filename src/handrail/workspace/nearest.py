"""What somebody may have meant who named a file that is not there."""

import difflib
import os
from pathlib import Path

from handrail.workspace.places import Place, printable
from handrail.workspace.walk import walk

LOOKED_AT = 5_000


def nearest(place: Place, root: Path) -> str:
    """A sentence naming files with a like name, or of the same name elsewhere; empty when there are none."""
    if not place.inside:
        return ""
    found = _like_it_beside(place, root) or _same_name_elsewhere(place, root)
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _like_it_beside(place: Place, root: Path) -> list[str]:
    folder = place.absolute.parent
    try:
        names = [entry.name for entry in os.scandir(folder)][:LOOKED_AT]
    except OSError:
        return []
    close = difflib.get_close_matches(place.absolute.name, names, n=3, cutoff=0.6)
    return [printable((folder / name).relative_to(root).as_posix()) for name in close]


def _same_name_elsewhere(place: Place, root: Path) -> list[str]:
    try:
        entries = walk(root, depth=12, most=LOOKED_AT)
    except OSError:
        return []
    return [entry.path for entry in entries if Path(entry.path).name == place.absolute.name][:3]
