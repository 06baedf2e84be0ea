"""What a command could do harm with in a workspace: repositories below it, secrets, files with two names."""

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from handrail.workspace.names import GIT, SECRET_FOLDERS, is_secret

if TYPE_CHECKING:
    from handrail.workspace.index import StatIndex

MOST = 200
"""Of each kind: every one is a mount."""


class Surveyed(NamedTuple):
    """Paths from the workspace on."""

    repositories: tuple[str, ...] = ()
    """`.git` of each repository, file or folder; that of the workspace itself is not among them."""
    secrets: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    """Files that have another name elsewhere: who writes one writes the other."""


def surveyed(index: "StatIndex") -> Surveyed:
    """What there is, by an index that was made anyway; folders that it left out are not looked into."""
    nested = [path for path in (*index.unentered, *index.files) if path.endswith(f"/{GIT}")]
    secrets = [path for path in (*index.files, *index.ignored) if _holds_secret(path)]
    here = Counter(index.files[path].inode for path in index.linked)
    linked = [path for path, names in index.linked.items() if names > here[index.files[path].inode]]
    return Surveyed(*(tuple(sorted(each)[:MOST]) for each in (nested, secrets, linked)))


def new_repositories(before: "StatIndex", after: "StatIndex") -> list[str]:
    """`.git` of each repository that was not there before."""
    known = {*before.unentered, *before.files}
    found = (path for path in (*after.unentered, *after.files) if path == GIT or path.endswith(f"/{GIT}"))
    return sorted(path for path in found if path not in known)


def _holds_secret(path: str) -> bool:
    *folders, name = path.split("/")
    return is_secret(name) or any(folder in SECRET_FOLDERS for folder in folders)
