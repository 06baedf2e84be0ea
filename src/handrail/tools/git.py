"""Branch and changed files of the workspace, asked of git without letting the repository run anything."""

import os
from pathlib import Path
from typing import NamedTuple

from handrail.tools.environment import without_secrets
from handrail.tools.process import run_process

SECONDS = 3.0
MOST_BYTES = 4_000_000
HARDENED = (
    "--no-optional-locks",
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
)
STATUS = ("status", "--porcelain=v2", "--branch", "--ignore-submodules=all", "-z")


class GitState(NamedTuple):
    branch: str
    """Empty when no branch is checked out."""
    changed: int
    """Files that differ from the last commit, new ones included."""


async def git_state(root: Path) -> GitState | None:
    """Where the repository stands; None without git, outside a repository, or when git takes too long."""
    filters = await _git(root, "config", "--name-only", "--get-regexp", r"^filter\.")
    if filters is None:
        return None
    status = await _git(root, *_without(filters), *STATUS)
    return _read(status) if status is not None else None


def _without(filters: str) -> list[str]:
    """Options that switch off every filter: `status` would run them on files that look changed."""
    words: list[str] = []
    for name in filters.split():
        if name.endswith((".clean", ".smudge", ".process")):
            words += ["-c", f"{name}="]
        elif name.endswith(".required"):
            words += ["-c", f"{name}=false"]
    return words


async def _git(root: Path, *words: str) -> str | None:
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) < MOST_BYTES

    try:
        ended = await run_process(
            ["git", *HARDENED, *words],
            folder=root,
            environment=without_secrets(os.environ),
            timeout=SECONDS,
            take=take,
        )
    except OSError:
        return None
    # `config --get-regexp` ends with 1 when nothing is set.
    fine = ended.code == 0 or (words[0] == "config" and ended.code == 1)
    return output.decode(errors="replace") if fine else None


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
