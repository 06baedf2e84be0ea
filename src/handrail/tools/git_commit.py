"""Commit given file contents without touching what the user has staged.

Nothing of the repository runs: no hook, no filter, no signing program. Only the branch moves, and the index
entries of the committed files in which the user had not staged anything else.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.changes.merge import merge
from handrail.config.remove_tree import remove_tree
from handrail.protocol.errors import UsageProblem
from handrail.storage.scratch import make_scratch, put_into_scratch
from handrail.tools.git import blob_id, converted_by, converted_files, git_contents
from handrail.tools.process import ProgramOutput
from handrail.tools.safe_git import NO_ENV, SafeGit, open_git
from handrail.workspace.files import Workspace
from handrail.workspace.git_folder import UnusableRepository, check_written

SECONDS = 30.0
MAX_BYTES = 16_000_000
OBJECT_ID = re.compile(r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$", re.MULTILINE)
CONVERTED = "git stores it through a filter. Add it yourself"
NO_ATTRIBUTES = "Nothing was committed: git could not say which files go through a filter. Try again."
IN_PROGRESS = {
    "MERGE_HEAD": "A merge",
    "rebase-merge": "A rebase",
    "rebase-apply": "A rebase",
    "CHERRY_PICK_HEAD": "A cherry-pick",
    "REVERT_HEAD": "A revert",
}


class FileToCommit(NamedTuple):
    path: str  # relative to the workspace
    base: bytes | None  # the content before the change; None if there was no file
    data: bytes | None  # the content to commit; None to delete the file
    mode: int | None = None


class TreeEntry(NamedTuple):
    mode: str
    object_id: str


async def find_repository(root: Path) -> "Repository":
    """The repository that the workspace is in, ready for a commit; else raises UsageProblem."""
    try:
        git = await open_git(root)
    except UnusableRepository as problem:
        raise UsageProblem(f"Nothing was committed. {problem}") from problem
    except OSError as error:
        raise _not_started(error) from error
    if git is None:
        raise UsageProblem("This folder is not in a git repository. Run `git init` to make one.")
    for name, what in IN_PROGRESS.items():
        if (git.place.folder / name).exists():
            raise UsageProblem(f"{what} is in progress in this repository. Finish it, then commit.")
    return Repository(git)


def _not_started(error: OSError) -> UsageProblem:
    return UsageProblem(f"Nothing was committed: git could not be run ({error.strerror or error}).")


class StagedFiles(NamedTuple):
    """Committed files in which the user had staged something else."""

    merged: list[str]  # the staged lines are others: the index now has the commit's lines as well
    unmerged: list[str]  # the index has only what the user staged


class Repository:
    """A git repository, used through git's plumbing commands."""

    def __init__(self, safe: SafeGit) -> None:
        self.safe = safe
        self.prefix = safe.place.prefix
        """The workspace's path in the repository: empty, or with a slash at its end."""

    async def head(self) -> tuple[str, str]:
        """The last commit, empty if there is none, and the branch, empty if none is checked out."""
        named = await self.git("symbolic-ref", "-q", "HEAD")
        found = await self.git("rev-parse", "--verify", "-q", "HEAD^{commit}")
        branch = _text(named).strip().removeprefix("refs/heads/") if named.code == 0 else ""
        if found.code != 0 and not branch:
            raise UsageProblem("The repository's last commit cannot be read. `git status` tells you more.")
        return (_object_id_in(found) if found.code == 0 else ""), branch

    async def ignored(self, paths: Sequence[str]) -> set[str]:
        found = await self.git("check-ignore", "-z", "--stdin", stdin=_nul_separated(paths))
        if found.code not in (0, 1):  # 1: none of them
            raise UsageProblem(f"git check-ignore failed: {_last_line(found)}")
        return set(_text(found).split("\0"))

    async def tree_with(self, files: Sequence[FileToCommit], head: str, folder: Path) -> tuple[str, set[str]]:
        """Write the last commit's tree with these files in it; uses its own index and working tree.

        Also returns the files that it leaves out, because the attributes there name a conversion.
        """
        work = folder / "tree"
        work.mkdir()
        environ = {"GIT_INDEX_FILE": str(folder / "index"), "GIT_WORK_TREE": str(work)}
        for file in files:
            if file.data is not None:
                mode = 0o755 if (file.mode or 0) & 0o100 else 0o644
                put_into_scratch(work, self.prefix + file.path, file.data, mode)
        await self._checked_git("read-tree", head or "--empty", environ=environ)
        deleted_first = sorted(files, key=lambda file: file.data is not None)
        paths = [self.prefix + file.path for file in deleted_first]
        converted = await converted_by(self.safe, paths, environ=environ, cwd=work)
        if converted is None:
            raise UsageProblem(NO_ATTRIBUTES)
        plain = _nul_separated([path for path in paths if path not in converted])
        words = ("update-index", "--add", "--remove", "-z", "--stdin")
        await self._checked_git(*words, stdin=plain, environ=environ, cwd=work)
        tree = _object_id_in(await self._checked_git("write-tree", environ=environ))
        return tree, {path.removeprefix(self.prefix) for path in converted}

    async def changed_paths(self, head: str, tree: str) -> list[str]:
        """Paths in the repository that the tree changes."""
        compare = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", head, tree]
        list_all = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree]
        found = await self._checked_git(*(compare if head else list_all))
        return [path for path in _text(found).split("\0") if path]

    async def commit(self, tree: str, head: str, message: str) -> str:
        """Commit the tree and move the branch, if it is still where it was."""
        parent = ("-p", head) if head else ()
        made = await self.git("commit-tree", tree, *parent, "-F", "-", stdin=message.encode(errors="replace"))
        if made.code != 0:
            hint = "Set `git config user.name` and `user.email` if git does not know who you are."
            raise UsageProblem(f"Nothing was committed: {_last_line(made)} {hint}")
        commit = _object_id_in(made)
        note = f"commit (handrail): {message.splitlines()[0]}"
        moved = await self.git("update-ref", "-m", note, "HEAD", commit, head or "0" * len(commit))
        if moved.code != 0:
            raise UsageProblem(f"Nothing was committed: the branch moved meanwhile ({_last_line(moved)}).")
        return commit

    async def update_index(self, head: str, commit: str, changed: Sequence[str]) -> StagedFiles:
        """Update the user's index for these files; returns those in which they had staged something else."""
        paths = [path.removeprefix(self.prefix) for path in changed]
        staged = await self.staged(paths)
        before = await self.entries_of(head, paths) if head else {}
        after = await self.entries_of(commit, paths)
        found, lines = StagedFiles([], []), []
        for path in changed:
            if staged.get(path) == after.get(path):
                continue
            entry = after.get(path) or TreeEntry("0", "0" * len(commit))
            if staged.get(path) != before.get(path):
                merged = await self._merged(before.get(path), staged.get(path), after.get(path))
                (found.merged if merged else found.unmerged).append(path.removeprefix(self.prefix))
                if merged is None:
                    continue
                entry = merged
            lines.append(f"{entry.mode} {entry.object_id}\t{path}")
        if lines:
            await self._checked_git("update-index", "-z", "--index-info", stdin=_nul_separated(lines))
        return found

    async def _merged(
        self, before: TreeEntry | None, staged: TreeEntry | None, after: TreeEntry | None
    ) -> TreeEntry | None:
        """The staged file with the commit's lines, so that committing it keeps them; None on conflict."""
        if before is None or staged is None or after is None:
            return None
        ids = [entry.object_id for entry in (before, staged, after)]
        contents = await git_contents(self.safe, ids, MAX_BYTES)
        if not contents.keys() >= set(ids):
            return None
        merged = merge(*(contents[object_id] for object_id in ids))
        if merged is None or merged.clashes:
            return None
        written = await self._checked_git("hash-object", "-w", "--stdin", stdin=merged.data)
        return TreeEntry(after.mode if staged.mode == before.mode else staged.mode, _object_id_in(written))

    async def staged(self, paths: Sequence[str]) -> dict[str, TreeEntry]:
        """The user's index entries for these workspace paths, by path in the repository."""
        words = ("ls-files", "-s", "-z", "--full-name", "--", *paths)
        found = await self._checked_git(*words, environ={"GIT_LITERAL_PATHSPECS": "1"})
        return _parse_entries(_text(found), object_at=1)

    async def entries_of(self, commit: str, paths: Sequence[str]) -> dict[str, TreeEntry]:
        """A commit's entries for these workspace paths, by path in the repository."""
        full = [self.prefix + path for path in paths]
        found = await self._checked_git("ls-tree", "-r", "-z", "--full-tree", commit, "--", *full)
        return _parse_entries(_text(found), object_at=2)

    async def git(
        self, *words: str, stdin: bytes = b"", environ: Mapping[str, str] = NO_ENV, cwd: Path | None = None
    ) -> ProgramOutput:
        try:
            return await self.safe.run(
                *words, stdin=stdin, limit=MAX_BYTES, environ=environ, cwd=cwd, seconds=SECONDS
            )
        except OSError as error:
            raise _not_started(error) from error

    async def _checked_git(
        self, *words: str, stdin: bytes = b"", environ: Mapping[str, str] = NO_ENV, cwd: Path | None = None
    ) -> ProgramOutput:
        found = await self.git(*words, stdin=stdin, environ=environ, cwd=cwd)
        if found.code != 0:
            raise UsageProblem(f"git {words[0]} failed: {_last_line(found)}")
        return found


def _text(output: ProgramOutput) -> str:
    return os.fsdecode(output.data)


def _nul_separated(texts: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(text) + b"\0" for text in texts)


def _parse_entries(text: str, object_at: int) -> dict[str, TreeEntry]:
    found = {}
    for line in text.split("\0"):
        words, _, path = line.partition("\t")
        fields = words.split()
        if path and len(fields) > object_at:
            found[path] = TreeEntry(fields[0], fields[object_at])
    return found


def _object_id_in(output: ProgramOutput) -> str:
    """The object id that git wrote; warnings come in the same stream."""
    found = OBJECT_ID.findall(_text(output))
    if not found:
        raise UsageProblem(f"git failed: {_last_line(output)}")
    return str(found[-1])


def _last_line(output: ProgramOutput) -> str:
    lines = _text(output).strip().splitlines()
    return lines[-1] if lines else f"it ended with status {output.code}."


class MadeCommit(NamedTuple):
    commit: str
    branch: str  # empty if no branch is checked out
    files: tuple[str, ...]
    notes: tuple[str, ...]  # for the user: what the commit leaves out, or has that they may not expect


async def commit_files(workspace: Workspace, files: Sequence[FileToCommit], message: str) -> MadeCommit:
    """Commit exactly these files; raises UsageProblem with the reason if nothing was committed."""
    repository = await find_repository(workspace.root)
    head, branch = await repository.head()
    try:
        check_written(repository.safe.place, branch)
    except UnusableRepository as problem:
        raise UsageProblem(f"Nothing was committed. {problem}") from problem
    committable, notes = await _committable(repository, workspace, files, head)
    folder = make_scratch()
    try:
        tree, converted = await repository.tree_with(committable, head, folder)
    finally:
        remove_tree(folder)
    notes += [f"{path} is left out: {CONVERTED}." for path in sorted(converted)]
    changed = await repository.changed_paths(head, tree)
    if not changed:
        raise UsageProblem(" ".join(["Nothing was committed: no file differs from the last commit.", *notes]))
    commit = await repository.commit(tree, head, message)
    try:
        staged = await repository.update_index(head, commit, changed)
        if names := [*staged.merged, *staged.unmerged]:
            notes.append(f"What you had staged in {', '.join(names)} stays staged.")
        if names := staged.unmerged:
            notes.append(f"Committing that as it is would undo this commit's changes to {', '.join(names)}.")
    except UsageProblem as problem:
        notes.append(f"Your index was not updated ({problem}). Run `git reset -- FILE` to update it.")
    inside = tuple(path.removeprefix(repository.prefix) for path in changed)
    return MadeCommit(commit, branch, inside, tuple(notes))


async def _committable(
    repository: Repository, workspace: Workspace, files: Sequence[FileToCommit], head: str
) -> tuple[list[FileToCommit], list[str]]:
    """The files that can be committed as they are, and a note on each other one."""
    elsewhere = {
        file.path
        for file in files
        for parent in Path(file.path).parents
        if parent.name and os.path.lexists(workspace.root / parent / ".git")
    }
    paths = [file.path for file in files if file.path not in elsewhere]  # git refuses the others
    ignored = await repository.ignored(paths)
    converted = await converted_files(repository.safe, paths)
    if converted is None:
        raise UsageProblem(NO_ATTRIBUTES)
    entries = await repository.entries_of(head, paths) if head else {}
    staged = await repository.staged(paths)
    committable, notes = [], list[str]()
    for file in files:
        entry = entries.get(repository.prefix + file.path)
        in_index = staged.get(repository.prefix + file.path)
        was_committed = _is_committed(entry, file.base)
        why, alone = "", None
        if file.path in elsewhere:
            why = "it is in a repository of its own"
        elif workspace.resolve(file.path).secret:
            why = "it may hold secrets"
        elif file.path in converted:
            why = CONVERTED
        elif file.path in ignored:
            why = "git ignores it"
        elif not was_committed and not _is_on_disk(workspace, file):
            why = "you changed it before and after. Add it yourself"
        elif not was_committed and in_index not in (None, entry):
            alone = await _without_staged_changes(repository, file, entry)
            why = "" if alone else "you have staged something in it. Commit that first, or add it yourself"
        elif not was_committed and entry:
            notes.append(f"{file.path} had uncommitted changes before: they are in this commit too.")
        if why:
            notes.append(f"{file.path} is left out: {why}.")
        else:
            committable.append(alone or file)
    return committable, notes


async def _without_staged_changes(
    repository: Repository, file: FileToCommit, entry: TreeEntry | None
) -> FileToCommit | None:
    """The last commit's file with only this change in it; None if the two cannot be separated."""
    if entry is None or file.base is None or file.data is None:
        return None
    contents = await git_contents(repository.safe, [entry.object_id], MAX_BYTES)
    if entry.object_id not in contents:
        return None
    merged = merge(file.base, contents[entry.object_id], file.data)
    return file._replace(data=merged.data) if merged and not merged.clashes else None


def _is_committed(entry: TreeEntry | None, base: bytes | None) -> bool:
    """Whether the last commit has the content from before the change, apart from line endings."""
    if entry is None or base is None:
        return entry is None and base is None
    texts = (base, base.replace(b"\r\n", b"\n"))
    return entry.object_id in {blob_id(text, len(entry.object_id)) for text in texts}


def _is_on_disk(workspace: Workspace, file: FileToCommit) -> bool:
    if file.data is None:
        return not workspace.exists(file.path)
    return workspace.sha256(file.path) == hashlib.sha256(file.data).hexdigest()
