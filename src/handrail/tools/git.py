"""Branch and changed files of the workspace, asked of git without letting the repository run anything."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from handrail.tools.environment import without_folders_of, without_secrets
from handrail.tools.process import run_process

SECONDS = 3.0
MOST_BYTES = 4_000_000
MOST_CONTENTS = 256_000_000
MOST_BRANCHES = 200
WORDS = ("--no-optional-locks", "--no-pager")
HARDENED = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    # A folder in the workspace that looks like a repository is not one: its settings are the workspace's.
    ("safe.bareRepository", "explicit"),
)
NO_FETCHING = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""A missing object is not fetched, by no program: unlike `protocol.allow`, a repository cannot undo this."""
STATUS = ("status", "--porcelain=v2", "--branch", "--ignore-submodules=all", "-z")

Setting = tuple[str, str]


class GitState(NamedTuple):
    branch: str
    """Empty when no branch is checked out."""
    changed: int
    """Files that differ from the last commit, new ones included."""


async def git_state(root: Path) -> GitState | None:
    """Where the repository stands; None without git, outside a repository, or when git takes too long."""
    names = await _git(root, HARDENED, "config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    if names is None:
        return None
    status = await _git(root, (*HARDENED, *filters_off(names)), *STATUS)
    return _read(status) if status is not None else None


async def git_contents(root: Path, object_ids: Sequence[str], most: int) -> dict[str, bytes]:
    """What git keeps under these ids, up to so many bytes in all; those that it has not are missing."""
    asked = "\n".join(object_ids).encode() + b"\n"
    output = await _git_bytes(root, HARDENED, asked, most, "cat-file", "--batch", "--buffer")
    return dict(_objects(output or b""))


class OnBranch(NamedTuple):
    """A file as a branch, a tag or a stash has it."""

    name: str
    data: bytes
    is_head: bool
    """It is what is checked out."""


async def on_branches(root: Path, path: str) -> list[OnBranch]:
    """A file of this folder on every branch, the latest first; none outside a repository."""
    words = ("for-each-ref", f"--count={MOST_BRANCHES}", "--sort=-committerdate")
    listed = await _git(root, HARDENED, *words, "--format=%(objectname) %(refname:short)")
    head = (await _git(root, HARDENED, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip()
    refs = [line.partition(" ") for line in (listed or "").splitlines()]
    commits = {head: "HEAD"} if head else {}
    commits |= {commit: name for commit, _, name in reversed(refs) if commit != head}
    asked = "".join(f"{commit}:./{path}\n" for commit in commits).encode()
    checked = await _git_bytes(root, HARDENED, asked, MOST_BYTES, "cat-file", "--batch-check")
    answers = [line.split() for line in (checked or b"").decode().splitlines()]
    blobs = {
        commit: words[0]
        for commit, words in zip(commits, answers, strict=False)
        if len(words) == 3 and words[1] == "blob"
    }
    contents = await git_contents(root, list(dict.fromkeys(blobs.values())), MOST_CONTENTS)
    return [
        OnBranch(commits[commit], contents[blob], commit == head)
        for commit, blob in blobs.items()
        if blob in contents
    ]


async def converted_files(root: Path, paths: Sequence[str]) -> set[str] | None:
    """Files that git stores otherwise than they are, line endings apart; None where it does not say."""
    asked = b"\0".join(map(os.fsencode, paths)) + b"\0"
    found: set[str] = set()
    for where in ((), ("--cached",)):
        words = ("check-attr", *where, "-z", "--stdin", "filter", "ident", "working-tree-encoding")
        output = await _git_bytes(root, HARDENED, asked, MOST_BYTES, *words)
        if output is None:
            return None
        fields = os.fsdecode(output).split("\0")
        triples = zip(fields[0::3], fields[2::3], strict=False)
        found |= {path for path, value in triples if value not in ("unspecified", "unset")}
    return found


def _objects(output: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while (end := output.find(b"\n", at)) >= 0:
        words = output[at:end].split()
        at = end + 1
        if len(words) == 3 and words[1] == b"blob":
            size = int(words[2])
            if at + size > len(output):
                return
            object_id, data = words[0].decode(), output[at : at + size]
            # Warnings come in the same stream: what is not the object of its id is none.
            if _id_of(data, len(object_id)) == object_id:
                yield object_id, data
            at += size + 1


def _id_of(data: bytes, digits: int) -> str:
    name = "sha1" if digits == 40 else "sha256"
    return hashlib.new(name, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def filters_off(names: str) -> list[Setting]:
    """Settings that switch off every filter: `status` would run them on files that look changed."""
    settings: list[Setting] = []
    for name in names.split("\0"):
        if name.endswith((".clean", ".smudge", ".process")):
            settings.append((name, ""))
        elif name.endswith(".required"):
            settings.append((name, "false"))
    return settings


async def _git(root: Path, settings: Sequence[Setting], *words: str) -> str | None:
    output = await _git_bytes(root, settings, b"", MOST_BYTES, *words)
    return os.fsdecode(output) if output is not None else None


async def _git_bytes(
    root: Path, settings: Sequence[Setting], given: bytes, most: int, *words: str
) -> bytes | None:
    """What git writes, told `given`; None where it fails, takes too long or writes more than `most` bytes."""
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) < most

    try:
        with TemporaryFile() as file:
            file.write(given)
            file.seek(0)
            ended = await run_process(
                ["git", *WORDS, *words],
                folder=root,
                environment=git_environment(root, settings),
                timeout=SECONDS,
                take=take,
                given=file.fileno(),
            )
    except OSError:
        return None
    # `config --get-regexp` ends with 1 when nothing is set.
    fine = ended.code == 0 or (words[0] == "config" and ended.code == 1)
    return bytes(output) if fine else None


def git_environment(root: Path, settings: Sequence[Setting]) -> dict[str, str]:
    """The user's environment with the settings in it: unlike `-c`, it takes names with an equals sign."""
    environ = without_folders_of(root, without_secrets(os.environ))
    return _with_settings(environ | NO_FETCHING, settings)


def quiet_git(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git commands run no hooks and no monitor of the repository's."""
    return _with_settings(dict(environ), HARDENED)


async def without_filters(root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git runs no filter that the repository names; those of the user's run."""
    words = ("config", "-z", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
    fields = (await _git(root, HARDENED, *words) or "").split("\0")
    scopes = zip(fields[::2], fields[1::2], strict=False)
    names = [name for scope, name in scopes if scope in ("local", "worktree")]
    return _with_settings(dict(environ), filters_off("\0".join(names)))


def _with_settings(environ: dict[str, str], settings: Sequence[Setting]) -> dict[str, str]:
    given = environ.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    for number, (name, value) in enumerate(settings, start=first):
        environ |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return environ | {"GIT_CONFIG_COUNT": str(first + len(settings))}


def _read(status: str) -> GitState:
    branch, changed = "", 0
    entries = iter(status.split("\0"))
    for entry in entries:
        if entry.startswith("# branch.head "):
            name = entry.removeprefix("# branch.head ")
            branch = "" if name == "(detached)" else name
        elif entry.startswith("2 "):
            changed += 1
            next(entries, "")
        elif entry.startswith(("1 ", "u ", "? ")):
            changed += 1
    return GitState(branch, changed)
