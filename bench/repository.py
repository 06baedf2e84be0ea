"""Generated git repositories, small and large, made once and brought back to their first state."""

import os
import shutil
import subprocess
from pathlib import Path

from bench.agents import BEFORE, CACHE, EDITED

FILES_A_FOLDER = 100
CONTENT = '''"""Module {number}."""


def value_{number}(given: int) -> int:
    """Something of its own."""
    return given + {number}
'''


def repository(files: int) -> Path:
    """The folder of a repository with so many files, one of which is to be edited."""
    folder = CACHE / "repositories" / f"files-{files}"
    if not (folder / ".git" / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _write(folder, files)
        _git(folder, "init", "-q")
        _git(folder, "config", "user.name", "Bench")
        _git(folder, "config", "user.email", "bench@example.com")
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", "Begin")
        _git(folder, "tag", "begin")
        (folder / ".git" / "whole").touch()
    return folder


def restore(folder: Path) -> None:
    """As it was: agents edit, commit and leave files."""
    _git(folder, "reset", "-q", "--hard", "begin")
    _git(folder, "clean", "-fdxq")


def _write(folder: Path, files: int) -> None:
    (folder / EDITED).write_text(f"{BEFORE}\n")
    for number in range(1, files):
        place = folder / f"part_{number // FILES_A_FOLDER:03}" if files > FILES_A_FOLDER else folder
        place.mkdir(exist_ok=True)
        (place / f"module_{number}.py").write_text(CONTENT.format(number=number))


def _git(folder: Path, *words: str) -> None:
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "-C", str(folder), *words], check=True, env=environ)
