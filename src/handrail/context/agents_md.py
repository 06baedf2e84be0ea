"""Project notes: AGENTS.md or CLAUDE.md of the workspace and the folders above it, capped."""

from pathlib import Path

from handrail.protocol.errors import PathProblem
from handrail.workspace.files import Workspace

NOTE_NAMES = ("AGENTS.md", "CLAUDE.md")


def project_notes(root: Path, cap: int) -> str:
    """The project's notes as text for the prompt; empty when it has none."""
    fragments, left = [], cap
    folders = _note_folders(root)
    paths = [next((each / name for name in NOTE_NAMES if (each / name).exists()), None) for each in folders]
    for path in filter(None, paths):
        name = path.relative_to(root) if path.is_relative_to(root) else path
        if left <= 0:
            fragments.append(f"[{name} was left out: project notes are capped at {cap} bytes.]")
            continue
        try:
            data = _read_note(path, boundary=folders[-1])
        except PathProblem as problem:
            fragments.append(f"[{name} was left out: {problem}]")
            continue
        text = data[:left].decode(errors="replace").strip()
        cut = "\n[The rest was cut: read the file for it.]" if len(data) > left else ""
        fragments.append(f"Project notes from {name}:\n{text}{cut}")
        left -= len(data)
    return "\n\n".join(fragments)


def _note_folders(root: Path) -> list[Path]:
    """The workspace and the folders above it up to the top of its repository, or the workspace alone."""
    folders = [root, *root.parents]
    top = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: top + 1]


def _read_note(path: Path, boundary: Path) -> bytes:
    """The file's content. A link must not bypass what the user would have been asked about."""
    workspace = Workspace(boundary)
    place = workspace.resolve(str(path))
    if not place.inside or place.secret or place.in_git:
        why = "it leads to a file that is not the project's own."
        raise PathProblem(why, "outside_workspace", place.path)
    return workspace.read(str(path)).data
