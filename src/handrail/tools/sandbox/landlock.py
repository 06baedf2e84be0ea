"""The words that run a command under Landlock, or under no more than a guardian."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from handrail.tools.sandbox.limits import FILE_BYTES, OPEN_FILES, PROCESSES
from handrail.tools.sandbox.places import Ground, hidden

SOURCE = Path(__file__).resolve().parents[3]
LAUNCH = """
import sys
sys.path.append(sys.argv[1])
from handrail.tools.sandbox.launcher import main
main(sys.argv[2:])
"""
"""Without the folders of the user and of packages, which take time to look at."""


def confined(words: Sequence[str], ground: Ground, temp: str, *, network: bool, processes: int) -> list[str]:
    """The command as words of the launcher; `temp` is a folder that it may write."""
    return _launched(
        "--landlock",
        *("--file-bytes", str(FILE_BYTES), "--open-files", str(OPEN_FILES), "--processes", str(processes)),
        *(("--network",) if network else ()),
        *("--write", str(ground.workspace), "--write", temp),
        *(word for path in hidden(ground) for word in ("--hide", path)),
        *("--", *words),
    )


def guarded(words: Sequence[str], processes: int = PROCESSES) -> list[str]:
    """The command with nothing but somebody who ends all that it leaves behind."""
    return _launched("--processes", str(processes), "--", *words)


def _launched(*options: str) -> list[str]:
    program = (sys.executable, "-I", "-S", "-c", LAUNCH.strip(), str(SOURCE))
    return [*program, "--parent", str(os.getpid()), *options]
