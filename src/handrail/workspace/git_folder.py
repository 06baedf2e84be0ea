"""Find the git folder of a working tree without git, and refuse one that leads elsewhere.

Git follows whatever `.git` names. A folder from elsewhere could name another repository of the user's, whose
files would then be shown as its own, or a pipe that never ends.
"""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from handrail.config.open_file import open_file

MAX_PATH_BYTES = 4096
OWN_FILES = ("HEAD", "index")
SHARED_FILES = ("config", "packed-refs", "shallow")
SHARED_FOLDERS = ("objects", "refs", "logs", "info", "worktrees", "reftable")


class UnusableRepository(ValueError):
    """Why git is not used here, and what to do, as a sentence for the user."""


class GitFolder(NamedTuple):
    top: Path  # the working tree: the folder that has `.git`
    folder: Path  # has HEAD and the index; links resolved
    common: Path  # has objects, refs and config: the same, except in a linked worktree
    prefix: str  # path of the searched folder in the working tree: empty, or with a slash at its end
    belongs: bool  # it is in the working tree or names it; otherwise its setting `core.worktree` has to
    foreign: bool  # another user owns part of it


def find_git_folder(root: Path) -> GitFolder | None:
    """The git folder for a folder's working tree; None without one; raises UnusableRepository."""
    device = os.stat(root).st_dev
    for top in (root, *root.parents):
        if os.stat(top).st_dev != device:
            return None
        git = top / ".git"
        mode = _mode(git)
        if stat.S_ISREG(mode) or (stat.S_ISDIR(mode) and os.path.lexists(git / "HEAD")):
            return _git_folder(root, top, git)
        if stat.S_ISREG(_mode(top / "HEAD")) and stat.S_ISDIR(_mode(top / "objects")):
            return None  # a bare repository
    return None


def _git_folder(root: Path, top: Path, git: Path) -> GitFolder:
    named = _path_in(git, "gitdir: ") if git.is_file() else git
    folder = Path(os.path.realpath(named))
    shared = folder / "commondir"
    common = Path(os.path.realpath(_path_in(shared))) if os.path.lexists(shared) else folder
    if common != folder and folder.parent != common / "worktrees":
        raise UnusableRepository(f"{shared} leads to another repository. Remove it, or run git yourself.")
    for name in OWN_FILES:
        _check(f"{folder}/{name}", common, file=True)
    for name in SHARED_FILES:
        _check(f"{common}/{name}", common, file=True)
    for name in SHARED_FOLDERS:
        _check(f"{common}/{name}", common, file=False)
    _check(f"{common}/objects/info/alternates", common, file=True)
    if not (os.path.lexists(folder / "HEAD") and _mode(common / "objects")):
        raise UnusableRepository(f"{folder} is no git folder. `git status` tells you more.")
    back = folder / "gitdir"
    named_back = common != folder and os.path.realpath(_path_in(back)) == os.path.realpath(git)
    belongs = named_back or folder.is_relative_to(os.path.realpath(top))
    foreign = any(not _is_users_own(path) for path in (top, git, folder))
    prefix = "" if top == root else f"{root.relative_to(top).as_posix()}/"
    return GitFolder(top, folder, common, prefix, belongs, foreign)


def _mode(path: str | Path) -> int:
    """The mode of what a path leads to; 0 if there is nothing."""
    with suppress(OSError, ValueError):
        return os.stat(path).st_mode
    return 0


def _check(path: str, common: Path, *, file: bool) -> None:
    mode = _mode(path)
    if mode and not (stat.S_ISREG(mode) if file else stat.S_ISDIR(mode)):
        raise UnusableRepository(f"{path} is no {'file' if file else 'folder'}, so git could hang on it.")
    if os.path.islink(path) and not Path(os.path.realpath(path)).is_relative_to(common):
        raise UnusableRepository(f"{path} leads to {os.path.realpath(path)}. Run git yourself.")


def _path_in(file: Path, start: str = "") -> Path:
    """The path that a small file of git's holds, relative to the folder the file is in."""
    data = read_start(file, MAX_PATH_BYTES + 1)
    text = os.fsdecode(data).rstrip("\r\n")
    path = text.removeprefix(start)
    if not text.startswith(start) or not path or "\0" in path or len(data) > MAX_PATH_BYTES:
        raise UnusableRepository(f"{file} does not name a git folder. `git status` tells you more.")
    return file.parent / path


def check_written(place: GitFolder, branch: str) -> None:
    """Raises UnusableRepository if a commit would write through a link, or to a pipe.

    `branch` is empty if no branch is checked out. Locks are safe: git makes them only where nothing is.
    """
    written = [(place.folder, "logs/HEAD")]
    written += [(place.common, f"{log}refs/heads/{branch}") for log in ("", "logs/") if branch]
    for base, name in written:
        for folder in PurePosixPath(name).parents:
            _check_own(base / folder, stat.S_ISDIR)
        _check_own(base / name, stat.S_ISREG)
    with os.scandir(place.common / "objects") as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                raise UnusableRepository(
                    f"{entry.path} is a link or no folder. Remove it, or commit yourself."
                )


def _check_own(path: Path, is_kind: Callable[[int], bool]) -> None:
    with suppress(FileNotFoundError):
        if not is_kind(os.lstat(path).st_mode):
            raise UnusableRepository(f"{path} is a link, or not what git makes there. Commit yourself.")


def read_start(file: Path, limit: int) -> bytes:
    """The beginning of a regular file; nothing for anything else."""
    with suppress(OSError), open_file(file) as opened:
        return opened.read(limit)
    return b""


def _is_users_own(path: Path) -> bool:
    """As git sees it: root may also use what belongs to the user who ran sudo."""
    owner, user = os.lstat(path).st_uid, os.geteuid()
    return owner == user or (user == 0 and str(owner) == os.environ.get("SUDO_UID"))
