"""Things that are no files, in the places where Handrail, git or another program looks for a file."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from tests.hostile.repository import git

NAMES = (
    "pyproject.toml",
    "package.json",
    "ruff.toml",
    "tsconfig.json",
    "AGENTS.md",
    "CLAUDE.md",
    ".env",
    ".gitignore",
    ".ignore",
    ".rgignore",
    ".gitattributes",
    ".gitmodules",
    ".git/index",
    ".git/HEAD",
    ".git/config",
    ".git/info/exclude",
    ".git/info/attributes",
    ".handrail/hooks.json",
    ".handrail/trust.json",
    ".orchestration/agent_trace.jsonl",
    ".orchestration/.gitattributes",
    ".intentignore",
    "agents/helper/agent.toml",
    "agents/helper/prompts/answer.md",
    "src/module.py",
    "src/.gitignore",
    "picture.png",
)
"""Each is replaced in one repository; the files whose problem ends a command come one by one, see `ALONE`."""
ALONE = (".handrail/config.toml", ".orchestration/active_intents.yaml", ".git", "agents", ".orchestration")
SPARSE = 5_000_000_000


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:  # the path of a socket has at most 108 bytes
            listener.bind(
                f"/proc/self/fd/{here}/{path.name}" if os.path.isdir("/proc/self/fd") else str(path)
            )
        finally:
            os.close(here)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(SPARSE)


KINDS: dict[str, Callable[[Path], None]] = {
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "pipe": os.mkfifo,
    "socket": _socket,
    "folder": lambda path: path.mkdir(),
    "circle of links": lambda path: path.symlink_to(path.name),
    "sparse file": _sparse,
    "memory": lambda path: path.symlink_to("/proc/self/mem"),
}


def special_repository(root: Path, kind: str, names: tuple[str, ...]) -> None:
    """A repository with one commit, in which each of the names is of this kind."""
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "src").mkdir()
    (root / "src" / "a.py").write_text("def total(cart):\n    return 1\n")
    (root / ".env.production").write_text("TOTAL=total\n")
    git(root, "add", "src/a.py")
    git(root, "commit", "-qm", "first")
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        KINDS[kind](path)
