"""Project notes: AGENTS.md or CLAUDE.md of the workspace and the folders above it, nearest first, capped."""

from pathlib import Path

NAMES = ("AGENTS.md", "CLAUDE.md")


def project_notes(root: Path, cap: int) -> str:
    """The notes as one fragment; empty when the project has none."""
    fragments, left = [], cap
    for file in note_files(root):
        if left <= 0:
            fragments.append(f"[{file} was left out: project notes are capped at {cap} bytes.]")
            continue
        try:
            with file.open("rb") as handle:
                data = handle.read(left + 1)
        except OSError as error:
            fragments.append(f"[{file} could not be read: {error.strerror}.]")
            continue
        text = data[:left].decode(errors="replace").strip()
        cut = "\n[The rest was cut: read the file for it.]" if len(data) > left else ""
        name = file.relative_to(root) if file.is_relative_to(root) else file
        fragments.append(f"Project notes from {name}:\n{text}{cut}")
        left -= len(data)
    return "\n\n".join(fragments)


def note_files(root: Path) -> list[Path]:
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
            found.append(file)
    return found
