"""What a scratch copy should have, and what commands in it see of the workspace itself.

A copy has all files that git tracks or does not ignore, and the ignored ones beside them (a generated
`_version.py`) unless they may hold secrets or are large. Those, the folders of installed packages and the
repositories are shown as they are in the workspace, read-only.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from handrail.config.open_file import read_file
from handrail.protocol.errors import StorageProblem
from handrail.workspace.files import Workspace
from handrail.workspace.git_index import MAX_INDEX_BYTES, DamagedIndex, find_index, read_index
from handrail.workspace.sensitive_names import GIT, leads_to_secret, normalized_parts
from handrail.workspace.stat_index import MAX_FILES, FileStat, snapshot, stat_of
from handrail.workspace.walk import SKIPPED_FOLDERS

MAX_BYTES = 4_000_000_000
MAX_IGNORED_BYTES = 16_000_000  # of an ignored file that is copied; a larger one is shown as it is
MAX_SHOWN = 500  # each is a mount
DEPENDENCY_FOLDERS = frozenset(
    (
        *("node_modules", "bower_components", "jspm_packages", ".yarn", ".pnpm-store"),
        *(".venv", "venv", ".virtualenv", "__pypackages__", ".eggs", ".tox", ".nox", ".direnv"),
        *("vendor", ".bundle", "deps", "Pods", "Carthage", "elm-stuff", ".terraform"),
    )
)
"""Of installed packages. Not those that builds write: `target`, `build`, `dist`."""
DEPENDENCY_ENDINGS = (".egg-info", ".dist-info")  # what an editable install says about itself
VENV_MARK = "pyvenv.cfg"
LATER = 1 << 63  # than any time in an index
SEARCHED = 100
SIZE = attrgetter("size")
Stored = TypeVar("Stored")


class Wanted(NamedTuple):
    files: Mapping[str, FileStat]
    folders: Mapping[str, int]
    """The mode of each."""
    read_only: tuple[str, ...]
    """Shown as they are in the workspace."""
    left_out: Mapping[str, str]
    """What cannot be copied, and why."""


def find_wanted(workspace: Workspace) -> Wanted:
    """What a copy of the workspace should have now; raises StorageProblem if that is too much."""
    root, now, own = workspace.root, snapshot(workspace.root), _OwnState(workspace)
    files, ignored = own.without(now.files), own.without(now.ignored)
    shown = {path for path, found in ignored.items() if found.size > MAX_IGNORED_BYTES or _is_secret(path)}
    beside = {path: found for path, found in ignored.items() if path not in shown}
    outside = own.without(dict.fromkeys((*now.unentered, *now.ignored_folders)))
    installed = [path for path in outside if is_installed(root, path)]
    tracked = tracked_below(
        root, [path for path in own.without(dict.fromkeys(now.ignored_folders)) if path not in installed]
    )
    folders = own.without(now.folders)
    if tracked:
        above = {str(parent) for path in tracked for parent in PurePosixPath(path).parents} - {"."}
        folders = {path: stat.S_IMODE(os.lstat(root / path).st_mode) for path in above} | dict(folders)
    left_out = {
        path: "the folder cannot be read, or is too deep"
        for path in own.without(dict.fromkeys(now.unentered))
        if path.rpartition("/")[2] not in SKIPPED_FOLDERS
    }
    wanted = {**files, **beside, **tracked} if beside or tracked else files
    if now.cut:
        raise StorageProblem(f"The workspace has more than {MAX_FILES:,} files, too many for a scratch copy.")
    size = sum(map(SIZE, wanted.values()))
    if size > MAX_BYTES:
        many = f"The workspace has {size:,} bytes of files that git does not ignore, and a scratch copy may"
        raise StorageProblem(f"{many} have {MAX_BYTES:,}. Name large folders in .gitignore.")
    read_only = (*sorted(installed), *sorted(shown))[:MAX_SHOWN]
    return Wanted(wanted, folders, read_only, left_out)


def is_installed(root: Path, path: str) -> bool:
    """Whether a folder has installed packages, by its name or by what is in it."""
    name = path.rpartition("/")[2]
    if name in DEPENDENCY_FOLDERS or name.endswith(DEPENDENCY_ENDINGS):
        return True
    # The repository of the workspace itself is protected, and so shown, in every sandbox.
    return (name == GIT and path != GIT) or os.path.isfile(root / path / VENV_MARK)


def _is_secret(path: str) -> bool:
    return leads_to_secret(normalized_parts(path))


class _OwnState:
    """Handrail's own folders in the workspace, which no copy has: the copies themselves are in one."""

    def __init__(self, workspace: Workspace) -> None:
        inside = [each for each in workspace.state_folders if each.is_relative_to(workspace.root)]
        self._paths = tuple(each.relative_to(workspace.root).as_posix() for each in inside)
        self._starts = tuple(f"{path}/" for path in self._paths)

    def without(self, paths: Mapping[str, Stored]) -> Mapping[str, Stored]:
        if not self._paths:
            return paths
        return {
            path: each
            for path, each in paths.items()
            if path not in self._paths and not path.startswith(self._starts)
        }


def tracked_below(root: Path, folders: Sequence[str]) -> dict[str, FileStat]:
    """Files that git tracks in these ignored folders, as they are now."""
    sought = [path for path in folders if path.rpartition("/")[2] not in SKIPPED_FOLDERS]
    found: dict[str, FileStat] = {}
    with suppress(OSError):
        if sought and (place := find_index(root)):
            known = stat_of(os.stat(place[0]))
            for path in _tracked(place[0], place[1], known, tuple(sought)):
                with suppress(OSError):
                    found[path] = stat_of(os.lstat(root / path))
    return {path: each for path, each in found.items() if stat.S_ISREG(each.mode)}


@lru_cache(maxsize=16)
def _tracked(index: Path, prefix: str, _known: FileStat, folders: tuple[str, ...]) -> tuple[str, ...]:
    data = read_file(index, MAX_INDEX_BYTES)
    starts = tuple(f"{path}/" for path in folders)
    # Most repositories track nothing there. Only in version 4 of an index are paths not written out.
    plain = data[4:8] in (b"\0\0\0\2", b"\0\0\0\3") and len(starts) <= SEARCHED
    if plain and not any(os.fsencode(prefix + start) in data for start in starts):
        return ()
    try:
        return tuple(path for path in read_index(data, LATER, prefix) if path.startswith(starts))
    except DamagedIndex:
        return ()
