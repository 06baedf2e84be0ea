"""What the files were like before a change: at a commit, or before a session's first change set."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.changes.crash_recovery import file_steps
from handrail.protocol.errors import UsageProblem
from handrail.sessions.change_history import session_changes
from handrail.storage.event_log import Log
from handrail.tools.git import git_contents
from handrail.tools.safe_git import SafeGit, open_git
from handrail.workspace.file_step import is_special
from handrail.workspace.git_folder import UnusableRepository

HEAD = "HEAD"
MAX_BYTES = 256_000_000  # of the files that changed, as they were
MAX_OUTPUT = 48_000_000
SECONDS = 60.0
REGULAR = ("100644", "100755")
NOTHING = "000000"
EXECUTABLE, PLAIN = 0o755, 0o644


class FileBefore(NamedTuple):
    data: bytes
    mode: int


class Base(NamedTuple):
    """The files that changed, each as it was; None for one that was not there."""

    name: str
    files: Mapping[str, FileBefore | None]
    problem: str = ""
    """Why the tree cannot be made as it was, in words; then only the paths are of use."""
    since: float = 0.0
    """When a session made its first change; 0: the base is a commit."""

    @property
    def is_session(self) -> bool:
        return self.since > 0


async def git_base(root: Path, revision: str = "") -> Base | None:
    """What the workspace changed since a commit, by default the last; None without a repository or a commit.

    Raises UsageProblem if the revision that the user named is not there.
    """
    try:
        git = await open_git(root)
    except (OSError, UnusableRepository) as problem:
        if revision:
            raise UsageProblem(f"{revision} cannot be compared with: {problem}") from problem
        return None
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision or HEAD}^{{commit}}")
    commit = os.fsdecode(await git.output(*words) or b"").strip() if git else ""
    if git is None or not commit:
        if revision:
            raise UsageProblem(f"There is no commit {revision} here. `git log --oneline` lists some.")
        return None
    return await _changes_since(git, commit, revision or HEAD)


async def _changes_since(git: SafeGit, commit: str, name: str) -> Base:
    diff = ("diff", "--raw", "-z", "--no-renames", "--no-abbrev", "--relative", "--ignore-submodules=all")
    changed = await git.output(*diff, commit, "--", limit=MAX_OUTPUT, seconds=SECONDS)
    others = ("ls-files", "--others", "--exclude-standard", "-z")
    added = await git.output(*others, limit=MAX_OUTPUT, seconds=SECONDS)
    if changed is None or added is None:
        return Base(name, {}, f"git could not list what changed since {name}")
    files: dict[str, FileBefore | None] = dict.fromkeys(_names(added))
    # :100644 100644 OLD NEW M, and the path
    fields = _names(changed)
    old: dict[str, tuple[str, str]] = {}
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        mode, _, object_id = head.lstrip(":").split()[:3]
        if mode in REGULAR:
            old[path] = (object_id, mode)
        elif mode == NOTHING:
            files[path] = None
        # Links and submodules are as they are now.
    contents = await git_contents(git, list(dict.fromkeys(each for each, _ in old.values())), MAX_BYTES)
    problem = ""
    for path, (object_id, mode) in old.items():
        data = contents.get(object_id)
        files[path] = FileBefore(data or b"", EXECUTABLE if mode == REGULAR[1] else PLAIN)
        if data is None:
            problem = f"git has no content of {path} at {name}, or all of it is too large"
    return Base(name, files, problem)


def _names(data: bytes) -> list[str]:
    return [os.fsdecode(each) for each in data.split(b"\0") if each]


def session_base(log: Log, session_id: str) -> Base | None:
    """What a session changed, and how it was before its first change; None if it changed nothing."""
    files: dict[str, FileBefore | None] = {}
    problem, since = "", 0.0
    for change in session_changes(log, session_id):
        since = since or change.at
        for step in file_steps(change.prepared) if change.in_place else ():
            if step.path in files or is_special(step.old_mode):
                continue
            data = log.blob(step.old) if step.old else None
            files[step.path] = FileBefore(data or b"", step.old_mode or PLAIN) if step.old else None
            if step.old and data is None:
                problem = f"the content of {step.path} before the session is no longer stored"
    return Base("the start of the session", files, problem, since) if files else None


def source_files(paths: Sequence[str], part: str, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the paths in a part that have one of the endings, relative to the part."""
    start = f"{part}/" if part else ""
    found = (path[len(start) :] for path in paths if path.startswith(start) and path.endswith(suffixes))
    return tuple(f"./{path}" if path.startswith("-") else path for path in found)  # else it were an option
