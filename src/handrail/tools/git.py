"""Read branch, status and file contents with git, without running the repository's code."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.tools.safe_git import NO_ENV, SAFE_SETTINGS, SafeGit, settings_variables, try_git

MAX_CONTENTS = 256_000_000
MAX_BRANCHES = 200
STATUS_COMMAND = ("status", "--porcelain=v2", "--branch", "--ignore-submodules=all", "-z")
CONVERSIONS = ("filter", "ident", "working-tree-encoding")


class GitState(NamedTuple):
    branch: str  # empty when no branch is checked out
    changed: int  # files that differ from the last commit, new ones included


async def git_state(root: Path) -> GitState | None:
    """Branch and number of changed files; None without git or a repository, or if git takes too long."""
    git = await try_git(root)
    status = await git.output(*STATUS_COMMAND) if git else None
    return _parse_status(os.fsdecode(status)) if status is not None else None


async def git_contents(git: SafeGit, object_ids: Sequence[str], limit: int) -> dict[str, bytes]:
    """The blobs with these ids, without those that git does not have; none if they exceed `limit` bytes."""
    stdin = "\n".join(object_ids).encode() + b"\n"
    output = await git.output("cat-file", "--batch", "--buffer", stdin=stdin, limit=limit)
    return dict(_parse_objects(output or b""))


class BranchFile(NamedTuple):
    """A file as a branch, a tag or a stash has it."""

    name: str
    data: bytes
    is_head: bool


async def file_on_branches(root: Path, path: str) -> list[BranchFile]:
    """The file on every branch, latest commit first; empty outside a repository, or if git fails."""
    git = await try_git(root)
    if git is None:
        return []
    words = ("for-each-ref", f"--count={MAX_BRANCHES}", "--sort=-committerdate")
    listed = await git.output(*words, "--format=%(objectname) %(refname:short)")
    if listed is None:
        return []
    head = os.fsdecode(await git.output("rev-parse", "--verify", "--quiet", "HEAD") or b"").strip()
    refs = [line.partition(" ") for line in os.fsdecode(listed).splitlines()]
    commits = {head: "HEAD"} if head else {}
    commits |= {commit: name for commit, _, name in reversed(refs) if commit != head}
    stdin = "".join(f"{commit}:./{path}\n" for commit in commits).encode()
    checked = await git.output("cat-file", "--batch-check", stdin=stdin)
    answers = zip(commits, (checked or b"").decode().splitlines(), strict=False)
    blobs = {commit: line.split()[0] for commit, line in answers if line.split()[1:2] == ["blob"]}
    contents = await git_contents(git, list(dict.fromkeys(blobs.values())), MAX_CONTENTS)
    found = {commit: contents[blob] for commit, blob in blobs.items() if blob in contents}
    return [BranchFile(commits[commit], data, commit == head) for commit, data in found.items()]


async def converted_files(git: SafeGit, paths: Sequence[str]) -> set[str] | None:
    """Files that git converts when it stores them, apart from line endings; None if git fails.

    By the attributes in the working tree and, as they differ, by those in the index.
    """
    found, staged = await converted_by(git, paths), await converted_by(git, paths, "--cached")
    return found | staged if found is not None and staged is not None else None


async def converted_by(
    git: SafeGit,
    paths: Sequence[str],
    *source: str,
    environ: Mapping[str, str] = NO_ENV,
    cwd: Path | None = None,
) -> set[str] | None:
    """The same by one source of attributes."""
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = ("check-attr", *source, "-z", "--stdin", *CONVERSIONS)
    output = await git.output(*words, stdin=stdin, limit=MAX_CONTENTS, environ=environ, cwd=cwd)
    fields = os.fsdecode(output or b"").split("\0")
    if output is None or len(fields) != 3 * len(CONVERSIONS) * len(paths) + 1:
        return None
    triples = zip(fields[0::3], fields[2::3], strict=False)
    return {path for path, value in triples if value not in ("unspecified", "unset")}


def _parse_objects(output: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while (end := output.find(b"\n", at)) >= 0:
        words = output[at:end].split()
        at = end + 1
        if len(words) == 3 and words[1] == b"blob":
            size = int(words[2])
            if at + size > len(output):
                return
            object_id, data = words[0].decode(), output[at : at + size]
            # Warnings come in the same stream, so the content is checked against its id.
            if blob_id(data, len(object_id)) == object_id:
                yield object_id, data
            at += size + 1


def blob_id(data: bytes, digits: int) -> str:
    """The id under which git stores this content; `digits` tells SHA-1 from SHA-256."""
    name = "sha1" if digits == 40 else "sha256"
    return hashlib.new(name, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def without_hooks(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which git runs no hooks and no file monitor of the repository."""
    return {**environ, **settings_variables(SAFE_SETTINGS, first=environ.get("GIT_CONFIG_COUNT", ""))}


def _parse_status(status: str) -> GitState:
    branch, changed = "", 0
    entries = iter(status.split("\0"))
    for entry in entries:
        if entry.startswith("# branch.head "):
            name = entry.removeprefix("# branch.head ")
            branch = "" if name == "(detached)" else name
        changed += entry.startswith(("1 ", "2 ", "u ", "? "))
        if entry.startswith("2 "):
            next(entries, "")  # the old name of a renamed file
    return GitState(branch, changed)
