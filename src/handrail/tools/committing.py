"""A commit of given contents, built beside the user's index: what they staged is not in it, and stays staged.

The repository runs nothing for it: no hook, no filter, no signing program. Only the branch moves, and index
entries of the committed files where the user had not staged something else in them.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.changes.merge import merge
from handrail.protocol.errors import UsageProblem
from handrail.storage.scratch import make_scratch, remove_scratch
from handrail.tools.git import converted_files, git_contents
from handrail.tools.repository import MOST_BYTES, Entry, Repository, Wanted, find_repository
from handrail.workspace.files import Workspace


class Made(NamedTuple):
    """A commit that was made."""

    commit: str
    branch: str
    """Empty where no branch is checked out."""
    files: tuple[str, ...]
    notes: tuple[str, ...]
    """For the user: what is not in it, or else than they may think."""


async def commit_files(workspace: Workspace, files: Sequence[Wanted], message: str) -> Made:
    """Commit exactly these; raises UsageProblem where nothing was committed, and says why."""
    repository = await find_repository(workspace.root)
    head, branch = await repository.head()
    fitting, notes = await _fitting(repository, workspace, files, head)
    folder = make_scratch()
    try:
        tree = await repository.tree_with(fitting, head, folder)
    finally:
        remove_scratch(folder)
    changed = await repository.differing(head, tree)
    if not changed:
        raise UsageProblem(" ".join(["Nothing was committed: no file differs from the last commit.", *notes]))
    commit = await repository.commit(tree, head, message)
    try:
        kept = await repository.follow_index(head, commit, changed)
        if staged := [*kept.beside, *kept.against]:
            notes.append(f"What you had staged in {', '.join(staged)} stays staged.")
        if kept.against:
            names = ", ".join(kept.against)
            notes.append(f"Committing that as it is would undo what this commit has of {names}.")
    except UsageProblem as problem:
        notes.append(f"Your index was not brought along, `git reset -- FILE` does it: {problem}")
    inside = tuple(path.removeprefix(repository.prefix) for path in changed)
    return Made(commit, branch, inside, tuple(notes))


async def _fitting(
    repository: Repository, workspace: Workspace, files: Sequence[Wanted], head: str
) -> tuple[list[Wanted], list[str]]:
    """Those that can be committed as they are, and why the others cannot."""
    elsewhere = {file.path for file in files if _in_another_repository(workspace.root, file.path)}
    paths = [file.path for file in files if file.path not in elsewhere]  # git refuses to speak of the others
    ignored = await repository.ignored(paths)
    converted = await converted_files(workspace.root, paths)
    there = await repository.entries_of(head, paths) if head else {}
    staged = await repository.staged(paths)
    fitting, notes = [], list[str]()
    for file in files:
        entry = there.get(repository.prefix + file.path)
        in_index = staged.get(repository.prefix + file.path)
        why, alone = "", None
        if file.path in elsewhere:
            why = "it is in a repository of its own"
        elif workspace.resolve(file.path).secret:
            why = "it may hold secrets"
        elif converted is None or file.path in converted:
            why = "git stores it through a filter: add it yourself"
        elif file.path in ignored:
            why = "git ignores it"
        elif not _is_base(entry, file.base) and not _is_on_disk(workspace, file):
            why = "you changed it before and after: add it yourself"
        elif not _is_base(entry, file.base) and in_index not in (None, entry):
            alone = await _alone(repository, file, entry)
            why = "" if alone else "you have staged something in it: commit that first, or add it yourself"
        elif not _is_base(entry, file.base) and entry:
            notes.append(f"{file.path} differed from the last commit before: that is in this commit too.")
        if why:
            notes.append(f"{file.path} is left out: {why}.")
        else:
            fitting.append(alone or file)
    return fitting, notes


async def _alone(repository: Repository, file: Wanted, entry: Entry | None) -> Wanted | None:
    """The last commit's file with nothing but the change in it; None where that cannot be told apart."""
    if entry is None or file.base is None or file.data is None:
        return None
    contents = await git_contents(repository.root, [entry.object_id], MOST_BYTES)
    if entry.object_id not in contents:
        return None
    merged = merge(file.base, contents[entry.object_id], file.data)
    return file._replace(data=merged.data) if merged and not merged.clashes else None


def _is_base(entry: Entry | None, base: bytes | None) -> bool:
    """Whether the last commit has what was there before the change, line endings apart."""
    if entry is None or base is None:
        return entry is None and base is None
    texts = (base, base.replace(b"\r\n", b"\n"))
    return entry.object_id in {_object_id(text, len(entry.object_id)) for text in texts}


def _object_id(data: bytes, digits: int) -> str:
    name = "sha1" if digits == 40 else "sha256"
    return hashlib.new(name, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _is_on_disk(workspace: Workspace, file: Wanted) -> bool:
    if file.data is None:
        return not workspace.exists(file.path)
    return workspace.sha256(file.path) == hashlib.sha256(file.data).hexdigest()


def _in_another_repository(root: Path, path: str) -> bool:
    return any(os.path.lexists(root / parent / ".git") for parent in Path(path).parents if parent.name)
