"""The git repository that the workspace is in, spoken to by its plumbing; it runs nothing for us."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from handrail.changes.merge import merge
from handrail.protocol.errors import UsageProblem
from handrail.storage.scratch import put_into_scratch
from handrail.tools.git import HARDENED, WORDS, filters_off, git_contents, git_environment
from handrail.tools.process import run_process

SECONDS = 30.0
MOST_BYTES = 16_000_000
OBJECT_ID = re.compile(r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$", re.MULTILINE)
UNDER_WAY = {
    "MERGE_HEAD": "A merge",
    "rebase-merge": "A rebase",
    "rebase-apply": "A rebase",
    "CHERRY_PICK_HEAD": "A cherry-pick",
    "REVERT_HEAD": "A revert",
}


class Wanted(NamedTuple):
    """A file as it is to be committed."""

    path: str
    """In the workspace."""
    base: bytes | None
    """What it was before it was changed; None where there was no file."""
    data: bytes | None
    """None: it is deleted."""
    mode: int | None = None


class Entry(NamedTuple):
    mode: str
    object_id: str


async def find_repository(root: Path) -> "Repository":
    """The repository that the workspace is in, ready to be committed to; else UsageProblem."""
    found = Repository(root)
    said = await found.git("rev-parse", "--absolute-git-dir", "--show-prefix")
    if said.code != 0:
        why = said.text.strip().splitlines()
        detail = f" (git says: {why[0]})" if why and "not a git repository" not in why[0] else ""
        raise UsageProblem(f"This folder is in no git repository{detail}: there is nothing to commit to.")
    folder, found.prefix = said.text.split("\n")[:2]
    found.folder = Path(folder)
    names = await found.git("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    found.settings = (*HARDENED, *filters_off(names.text))
    for name, what in UNDER_WAY.items():
        if (found.folder / name).exists():
            raise UsageProblem(f"{what} is under way in this repository. Finish it, then commit.")
    return found


class Staged(NamedTuple):
    """Files of a commit in which the user had staged something else."""

    beside: list[str]
    """Other lines: the commit's are in the index now, too."""
    against: list[str]
    """The same lines, or not to be told: the index has only what the user staged."""


class Said(NamedTuple):
    code: int | None
    text: str


class Repository:
    """A git repository, spoken to by its plumbing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root
        self.prefix = ""
        """Where the workspace is in the repository: empty, or a path with a slash at its end."""
        self.settings: tuple[tuple[str, str], ...] = HARDENED

    async def head(self) -> tuple[str, str]:
        """The last commit, empty where there is none yet, and the branch, empty where none is checked out."""
        named = await self.git("symbolic-ref", "-q", "HEAD")
        found = await self.git("rev-parse", "--verify", "-q", "HEAD^{commit}")
        branch = named.text.strip().removeprefix("refs/heads/") if named.code == 0 else ""
        if found.code != 0 and not branch:
            raise UsageProblem("The last commit of this repository cannot be read; `git status` says more.")
        return (_id_in(found) if found.code == 0 else ""), branch

    async def ignored(self, paths: Sequence[str]) -> set[str]:
        said = await self.git("check-ignore", "-z", "--stdin", given=_listed(paths))
        if said.code not in (0, 1):  # 1: none of them
            raise UsageProblem(f"git check-ignore says: {_last_line(said)}")
        return set(said.text.split("\0"))

    async def tree_with(self, files: Sequence[Wanted], head: str, folder: Path) -> str:
        """The tree of the last commit with these files in it, by an index and a working tree of its own."""
        work = folder / "tree"
        work.mkdir()
        own = {
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_DIR": str(self.folder),
            "GIT_WORK_TREE": str(work),
        }
        for file in files:
            if file.data is not None:
                mode = 0o755 if (file.mode or 0) & 0o100 else 0o644
                put_into_scratch(work, self.prefix + file.path, file.data, mode)
        await self._must("read-tree", head or "--empty", own=own)
        gone_first = sorted(files, key=lambda file: file.data is not None)
        listed = _listed([self.prefix + file.path for file in gone_first])
        await self._must(
            "update-index", "--add", "--remove", "-z", "--stdin", given=listed, own=own, cwd=work
        )
        return _id_in(await self._must("write-tree", own=own))

    async def differing(self, head: str, tree: str) -> list[str]:
        """Paths in the repository that the tree changes."""
        compare = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", head, tree]
        list_all = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree]
        said = await self._must(*(compare if head else list_all))
        return [path for path in said.text.split("\0") if path]

    async def commit(self, tree: str, head: str, message: str) -> str:
        """Commit the tree and move the branch, if it is still where it was."""
        parent = ("-p", head) if head else ()
        said = await self.git("commit-tree", tree, *parent, "-F", "-", given=message.encode(errors="replace"))
        if said.code != 0:
            hint = "`git config user.name` and `user.email` say who you are."
            raise UsageProblem(f"Nothing was committed: {_last_line(said)} {hint}")
        commit = _id_in(said)
        note = f"commit (handrail): {message.splitlines()[0]}"
        moved = await self.git("update-ref", "-m", note, "HEAD", commit, head or "0" * len(commit))
        if moved.code != 0:
            raise UsageProblem(f"Nothing was committed: the branch moved meanwhile ({_last_line(moved)}).")
        return commit

    async def follow_index(self, head: str, commit: str, changed: Sequence[str]) -> "Staged":
        """Bring the user's index along in these files; those in which they had staged something else."""
        listed = [path.removeprefix(self.prefix) for path in changed]
        staged = await self.staged(listed)
        before = await self.entries_of(head, listed) if head else {}
        after = await self.entries_of(commit, listed)
        found, lines = Staged([], []), []
        for path in changed:
            if staged.get(path) == after.get(path):
                continue
            entry = after.get(path) or Entry("0", "0" * len(commit))
            if staged.get(path) != before.get(path):
                merged = await self._merged(before.get(path), staged.get(path), after.get(path))
                (found.beside if merged else found.against).append(path.removeprefix(self.prefix))
                if merged is None:
                    continue
                entry = merged
            lines.append(f"{entry.mode} {entry.object_id}\t{path}")
        if lines:
            await self._must("update-index", "-z", "--index-info", given=_listed(lines))
        return found

    async def _merged(self, before: Entry | None, staged: Entry | None, after: Entry | None) -> Entry | None:
        """What is staged with the commit's lines in it, which it would undo otherwise; None on a clash."""
        if before is None or staged is None or after is None:
            return None
        ids = [entry.object_id for entry in (before, staged, after)]
        contents = await git_contents(self.root, ids, MOST_BYTES)
        if not contents.keys() >= set(ids):
            return None
        merged = merge(*(contents[object_id] for object_id in ids))
        if merged is None or merged.clashes:
            return None
        written = await self._must("hash-object", "-w", "--stdin", given=merged.data)
        return Entry(after.mode if staged.mode == before.mode else staged.mode, _id_in(written))

    async def staged(self, paths: Sequence[str]) -> dict[str, Entry]:
        """What the user's index has of the workspace's paths, by path in the repository."""
        own = {"GIT_LITERAL_PATHSPECS": "1"}
        said = await self._must("ls-files", "-s", "-z", "--full-name", "--", *paths, own=own)
        return _entries(said.text, object_at=1)

    async def entries_of(self, commit: str, paths: Sequence[str]) -> dict[str, Entry]:
        """What a commit has of the workspace's paths, by path in the repository."""
        full = [self.prefix + path for path in paths]
        said = await self._must("ls-tree", "-r", "-z", "--full-tree", commit, "--", *full)
        return _entries(said.text, object_at=2)

    async def git(
        self, *words: str, given: bytes = b"", own: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Said:
        output = bytearray()

        def take(chunk: bytes) -> bool:
            output.extend(chunk)
            return len(output) < MOST_BYTES

        environment = git_environment(self.root, self.settings) | dict(own or {})
        try:
            with TemporaryFile() as file:
                file.write(given)
                file.seek(0)
                ended = await run_process(
                    ["git", *WORDS, *words],
                    folder=cwd or self.root,
                    environment=environment,
                    timeout=SECONDS,
                    take=take,
                    given=file.fileno(),
                )
        except OSError as error:
            raise UsageProblem(f"git could not be started: {error.strerror or error}.") from error
        return Said(ended.code, os.fsdecode(bytes(output)))

    async def _must(
        self, *words: str, given: bytes = b"", own: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Said:
        said = await self.git(*words, given=given, own=own, cwd=cwd)
        if said.code != 0:
            raise UsageProblem(f"git {words[0]} says: {_last_line(said)}")
        return said


def _listed(texts: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(text) + b"\0" for text in texts)


def _entries(text: str, object_at: int) -> dict[str, Entry]:
    found = {}
    for line in text.split("\0"):
        words, _, path = line.partition("\t")
        fields = words.split()
        if path and len(fields) > object_at:
            found[path] = Entry(fields[0], fields[object_at])
    return found


def _id_in(said: Said) -> str:
    """The object id in what git wrote; warnings come in the same stream."""
    found = OBJECT_ID.findall(said.text)
    if not found:
        raise UsageProblem(f"git says: {_last_line(said)}")
    return str(found[-1])


def _last_line(said: Said) -> str:
    lines = said.text.strip().splitlines()
    return lines[-1] if lines else f"it ended with {said.code}."
