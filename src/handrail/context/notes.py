"""Project notes: AGENTS.md or CLAUDE.md of the workspace and the folders above it, nearest first, capped."""

from pathlib import Path
from typing import NamedTuple

from handrail.protocol.errors import PathProblem
from handrail.workspace.files import Workspace

NAMES = ("AGENTS.md", "CLAUDE.md")


class NoteFile(NamedTuple):
    """A file of notes, and the folder that it must not lead out of."""

    path: Path
    boundary: Path


def project_notes(root: Path, cap: int) -> str:
    """The notes as one fragment; empty when the project has none."""
    fragments, left = [], cap
    for file in note_files(root):
        name = file.path.relative_to(root) if file.path.is_relative_to(root) else file.path
        if left <= 0:
            fragments.append(f"[{name} was left out: project notes are capped at {cap} bytes.]")
            continue
        try:
            data = _data(file)
        except PathProblem as problem:
            fragments.append(f"[{name} was left out: {problem}]")
            continue
        text = data[:left].decode(errors="replace").strip()
        cut = "\n[The rest was cut: read the file for it.]" if len(data) > left else ""
        fragments.append(f"Project notes from {name}:\n{text}{cut}")
        left -= len(data)
    return "\n\n".join(fragments)


def note_files(root: Path) -> list[NoteFile]:
    """One file a folder, from the workspace up to the top of its repository (or the workspace alone)."""
    folders = [root]
    if not (root / ".git").exists():
        above = list(root.parents)
        top = next((number for number, folder in enumerate(above) if (folder / ".git").exists()), -1)
        folders += above[: top + 1]
    found = []
    for folder in folders:
        file = next((folder / name for name in NAMES if (folder / name).is_file()), None)
        if file:
            found.append(NoteFile(file, boundary=folders[-1]))
    return found


def _data(file: NoteFile) -> bytes:
    """What the file holds. A link must not bring in what the user would have been asked about."""
    workspace = Workspace(file.boundary)
    place = workspace.resolve(str(file.path))
    if not place.inside or place.secret or place.in_git:
        raise PathProblem(
            "it leads to a file that is not the project's own.", "outside_workspace", place.path
        )
    return workspace.read(str(file.path)).data
