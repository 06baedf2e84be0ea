"""Programs of our own that nobody waits for."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from handrail.tools.environment import find_program, without_secrets

SECONDS = 5.0
POLITELY = ("-n", "10")
"""After those whom somebody waits for, and yet not starved by them."""
SOURCE = Path(__file__).resolve().parents[2]


def start_in_background(module: str, words: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
    """Start a module of ours in a session of its own, without secrets; it ends by itself.

    One that dies is started again, twice. One that cannot be started is not told: nothing waits for it.
    """
    given = [os.path.abspath(each) for each in environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    paths = {"PYTHONPATH": os.pathsep.join([str(SOURCE), *given])}
    nice = find_program("nice")
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            # The shell ends at once, so that its child is the system's to collect and not ours.
            [
                "/bin/sh",
                "-c",
                '("$@" || "$@" || "$@") &',
                "sh",
                *([nice, *POLITELY] if nice else ()),
                sys.executable,
                "-P",
                "-m",
                module,
                *words,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=without_secrets(environ) | paths,
            start_new_session=True,
            timeout=SECONDS,
            check=False,
        )
