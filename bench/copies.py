"""Scratch copies: the first one and a refresh, beside `cp -r` and `git worktree add` in the same run.

`python -m bench.copies` measures only these.
"""

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.agents import BEFORE, CACHE, EDITED
from bench.repository import repository, restore
from bench.timing import Measured
from handrail.workspace.files import Workspace
from handrail.workspace.scratch_copy.copies import ScratchCopies

FILES = 20_000
ROUNDS, REFRESHES = 3, 9
SETTLED_SECONDS = 6.0
"""For some seconds ext4 does not use the place of a deleted file again, and takes long to find another."""


def measure() -> Iterator[Measured]:
    """The copy of a repository with 20,000 files."""
    folder = repository(FILES)
    restore(folder)
    CACHE.mkdir(parents=True, exist_ok=True)
    # On the same file system as the repository.
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as place:
        yield from _measure(folder, Path(place))
    restore(folder)


def _measure(folder: Path, place: Path) -> Iterator[Measured]:
    cp, git, ours = [], [], []
    time.sleep(SETTLED_SECONDS)
    for number in range(ROUNDS):  # in turns, and nothing is deleted in between
        cp.append(_ms(partial(_run, "cp", "-r", str(folder), str(place / f"cp-{number}"))))
        git.append(_ms(partial(_add_worktree, folder, place / f"git-{number}")))
        ours.append(_ms(partial(_take, folder, place / f"ours-{number}")))
    first, worktree = statistics.median(ours), statistics.median(git)
    yield Measured("first scratch copy", first, "cp -r", first / statistics.median(cp))
    yield Measured("first scratch copy", first, "git worktree add", first / worktree)
    with ScratchCopies(Workspace(folder), place / "ours-0").take() as copy:
        for name, used in (("one change", False), ("one change, after a command ran in the copy", True)):
            times = []
            for number in range(REFRESHES):
                (folder / EDITED).write_text(f"{BEFORE}  # {name} {number}\n")
                if used:
                    copy.shown()
                times.append(_ms(copy.refresh))
            spent = statistics.median(times)
            yield Measured(f"scratch copy, {name}", spent, "git worktree add", spent / worktree)
    for number in range(ROUNDS):
        _run("git", "-C", str(folder), "worktree", "remove", "--force", str(place / f"git-{number}"))
        shutil.rmtree(place / f"cp-{number}")


def _take(folder: Path, place: Path) -> None:
    with ScratchCopies(Workspace(folder), place).take():
        pass


def _add_worktree(folder: Path, place: Path) -> None:
    _run("git", "-C", str(folder), "worktree", "add", "-q", "--detach", str(place), "begin")


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def _ms(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    for row in measure():
        print(f"{row.name}: {row.milliseconds:.1f} ms, {row.ratio:.2f} times {row.against}", flush=True)
