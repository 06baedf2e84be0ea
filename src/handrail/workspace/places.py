"""Where a path leads: resolved with its links and `..`, and told apart by what lies there."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from handrail.protocol.errors import PathProblem
from handrail.protocol.record import Record
from handrail.workspace.names import holds_secret, is_git, is_state, split

LONGEST_PATH = 4_096
"""Bytes, as the system has it."""
MAGIC = ("/proc/", "/dev/", "/sys/")
"""Their links lead where the reader's own process has something open: no path that a file has."""


class Place(Record):
    """A path with all that a decision about it needs."""

    absolute: Path
    """Links and `..` resolved."""
    path: str
    """For people, models and events: relative to the workspace where it is inside."""
    inside: bool
    in_git: bool
    in_state: bool
    """Handrail's own files."""
    secret: bool
    links: int = 1
    """Names that the file has; more than one are hard links."""
    given: str = ""
    """As it was written, for what the writing itself tells."""


def resolve(root: Path, given: str, state_folders: Iterable[Path]) -> Place:
    """The place that a user's or a model's path means; it need not exist."""
    joined = os.path.join(root, given or ".")
    if len(joined.encode(errors="replace")) > LONGEST_PATH:
        message = f"A path has at most {LONGEST_PATH:,} bytes; this one is longer: {given[:100]!r}…"
        raise PathProblem(message, "invalid_path")
    try:
        absolute = Path(os.path.realpath(joined))
        os.fsencode(absolute)
    except (ValueError, OSError) as error:
        raise _no_path(given, str(error)) from error
    inside = absolute.is_relative_to(root) and not _is_magic(given, root)
    # The name as it was given counts too: a link called `.env` is as secret as what it leads to.
    wanted, found = split(_below(os.path.normpath(joined), root)), split(_below(str(absolute), root))
    return Place(
        absolute=absolute,
        path=printable(absolute.relative_to(root).as_posix() if inside else str(absolute)),
        inside=inside,
        in_git=is_git(wanted + found) or (inside and _in_repository(absolute, root)),
        in_state=is_state(wanted + found) or any(absolute.is_relative_to(folder) for folder in state_folders),
        secret=holds_secret(wanted) or holds_secret(found),
        links=_links(absolute),
        given=given,
    )


def printable(name: str) -> str:
    """A file's name as text that can be stored and shown, whatever bytes it is made of."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _links(path: Path) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 1
    return found.st_nlink if stat.S_ISREG(found.st_mode) else 1


def _below(path: str, root: Path) -> str:
    return os.path.relpath(path, root) if Path(path).is_relative_to(root) else path


def _is_magic(given: str, root: Path) -> bool:
    path = "/" + os.path.normpath(given).lstrip("/") if given.startswith("/") else ""
    return path.startswith(MAGIC) and not Path(path).is_relative_to(root)


def _in_repository(absolute: Path, root: Path) -> bool:
    """Whether it lies in a repository without a `.git`: a bare one, or what a worktree's `.git` names."""
    for folder in (absolute, *absolute.parents):
        if not folder.is_relative_to(root):
            return False
        if os.path.lexists(folder / "HEAD"):
            whole = (folder / "objects").is_dir() and (folder / "refs").is_dir()
            if whole or os.path.lexists(folder / "commondir"):
                return True
    return False


def _no_path(given: str, why: str) -> PathProblem:
    message = f"{given[:200]!r} is not a path ({why}). Give a path of a file in the workspace."
    return PathProblem(message, "invalid_path")
