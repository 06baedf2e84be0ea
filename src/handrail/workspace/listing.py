"""A folder's content as text: one level, or a tree up to a cap."""

from handrail.protocol.errors import PathProblem
from handrail.workspace.files import Workspace
from handrail.workspace.places import Place
from handrail.workspace.walk import Entry, walk

MOST_ENTRIES = 200


def list_folder(workspace: Workspace, given: str | Place, depth: int = 1, most: int = MOST_ENTRIES) -> str:
    """One entry a line, folders with a slash, files with their size; says so when there are more."""
    place = workspace.resolve(given)
    workspace.check_still(place)
    try:
        found = walk(place.absolute, depth, most + 1)
    except NotADirectoryError as error:
        raise PathProblem(
            f"{place.path} is a file, not a folder: read it.", "not_text", place.path
        ) from error
    except FileNotFoundError as error:
        raise PathProblem(
            f"There is no folder {place.path}. List the folder above it.", "file_missing", place.path
        ) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise PathProblem(f"{place.path} cannot be listed: {why}.", "protected_path", place.path) from error
    lines = [line_of(entry) for entry in sorted(found[:most])]
    if len(found) > most:
        lines.append(f"[cut after {most} entries: list a folder further down, or use glob]")
    return "\n".join(lines) or "[empty folder]"


def line_of(entry: Entry) -> str:
    match entry.kind:
        case "folder":
            return f"{entry.path}/"
        case "link":
            return f"{entry.path} -> {entry.target}"
        case "file":
            return f"{entry.path}  {entry.size:,} bytes"
        case _:
            return f"{entry.path}  (no regular file)"
