"""Branch and changed files of the workspace, asked of git without letting the repository run anything."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.tools.environment import without_secrets
from handrail.tools.process import run_process

SECONDS = 3.0
MOST_BYTES = 4_000_000
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
    status = await _git(root, (*HARDENED, *_without(names)), *STATUS)
    return _read(status) if status is not None else None


def _without(names: str) -> list[Setting]:
    """Settings that switch off every filter: `status` would run them on files that look changed."""
    settings: list[Setting] = []
    for name in names.split("\0"):
        if name.endswith((".clean", ".smudge", ".process")):
            settings.append((name, ""))
        elif name.endswith(".required"):
            settings.append((name, "false"))
    return settings


async def _git(root: Path, settings: Sequence[Setting], *words: str) -> str | None:
    output = bytearray()

    def take(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) < MOST_BYTES

    try:
        ended = await run_process(
            ["git", *WORDS, *words],
            folder=root,
            environment=_environment(settings),
            timeout=SECONDS,
            take=take,
        )
    except OSError:
        return None
    # `config --get-regexp` ends with 1 when nothing is set.
    fine = ended.code == 0 or (words[0] == "config" and ended.code == 1)
    return os.fsdecode(bytes(output)) if fine else None


def _environment(settings: Sequence[Setting]) -> dict[str, str]:
    """The user's environment with the settings in it: unlike `-c`, it takes names with an equals sign."""
    environ = without_secrets(os.environ) | NO_FETCHING
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
