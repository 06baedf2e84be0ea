"""The words that run a command under Landlock."""

import sys
from collections.abc import Sequence
from pathlib import Path

from handrail.tools.sandbox.limits import FILE_BYTES, OPEN_FILES
from handrail.tools.sandbox.places import Ground, hidden

LAUNCHER = Path(__file__).with_name("launcher.py")


def confined(words: Sequence[str], ground: Ground, temp: str, *, network: bool) -> list[str]:
    """The command as words of the launcher; `temp` is a folder that it may write."""
    return [
        *(sys.executable, "-I", "-S", str(LAUNCHER)),
        *("--file-bytes", str(FILE_BYTES), "--open-files", str(OPEN_FILES)),
        *(("--network",) if network else ()),
        *("--write", str(ground.workspace), "--write", temp),
        *(word for path in hidden(ground) for word in ("--hide", path)),
        *("--", *words),
    ]
