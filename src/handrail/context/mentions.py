"""`@path` in a message: resolved by code to exact content, no model involved."""

import re
from typing import NamedTuple

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import SHOWN_DIGITS, FileSeen
from handrail.workspace.files import Workspace
from handrail.workspace.listing import list_folder

MENTION = re.compile(r"(?<![\w@/.])@(\"[^\"\n]+\"|[\w./~+-][\w./~+\-]*)")
NAME_CAP = 200
ATTACHED_CAP = 48_000
"""Bytes of all mentioned files together; what does not fit is named, for the model to read itself."""


class Attached(NamedTuple):
    """Content that goes with a message, and which versions of which files it shows."""

    text: str
    files: tuple[FileSeen, ...]


def attach_mentions(message: str, workspace: Workspace, cap: int = ATTACHED_CAP) -> Attached:
    """The content of every file and folder that the message mentions."""
    fragments: list[str] = []
    files: list[FileSeen] = []
    left = cap
    for name in mentioned(message):
        fragment, seen = _attach(name, workspace, left)
        left -= len(fragment.encode(errors="replace"))
        fragments += [fragment] if fragment else []
        files += seen
    return Attached("\n\n".join(fragments), tuple(files))


def mentioned(message: str) -> list[str]:
    """What stands behind each `@`, once each, in order."""
    found = (match.group(1) for match in MENTION.finditer(message))
    names = (name[1:-1] if name.startswith('"') else name.rstrip(".,:;") for name in found)
    return [name for name in dict.fromkeys(names) if name]


def _attach(name: str, workspace: Workspace, left: int) -> tuple[str, list[FileSeen]]:
    try:
        place = workspace.resolve(name)
        if place.absolute.is_dir():
            return f"### {name}/\n{list_folder(workspace, name)}", []
        if not place.inside or place.secret:
            return f"[{name} was not attached: use the read tool, so that the user can be asked.]", []
        file = workspace.read(name)
    except (PathProblem, OSError) as problem:
        looks_like_path = "/" in name or re.search(r"\.\w{1,8}$", name)
        why = f"{problem.strerror}." if isinstance(problem, OSError) else str(problem)
        return (f"[@{name[:NAME_CAP]}: {why} Do not guess its content.]" if looks_like_path else ""), []
    header = f"### {file.path} [hash: {file.sha256[:SHOWN_DIGITS]}]"
    if len(file.data) > left:
        return f"[{file.path} ({len(file.data)} bytes) did not fit: use the read tool.]", []
    return f"{header}\n{file.text}", [FileSeen(path=file.path, sha256=file.sha256, how="user")]
