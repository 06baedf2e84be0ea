"""What bash makes of a text, without running any of its programs."""

import os
import subprocess
from pathlib import Path

BUILTINS = "echo pwd test true false cd read type kill let local return shift times umask wait"


def words_of_bash(text: str, folder: Path, locale: str = "C") -> list[list[str]] | None:
    """The words of every command that bash would run, in their order; None where it refuses the text.

    No program is run: the PATH leads nowhere, so each command ends in the handler, which keeps its words.
    """
    script = f"command_not_found_handle() {{ printf '%s\\0' \"$@\" '' >&9; }}\nenable -n {BUILTINS}\n{text}"
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as said:
        done = subprocess.run(
            ["/bin/bash", "-c", f"exec 9>&{writing}\n{script}"],
            cwd=folder,
            env={"PATH": "/nonexistent", "LC_ALL": locale},
            pass_fds=[writing],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        os.close(writing)
        found = said.read().decode(errors="surrogateescape")
    if b"syntax error" in done.stderr or b"unexpected EOF" in done.stderr:
        return None
    commands: list[list[str]] = [[]]
    for word in found.split("\0")[:-1]:
        if word:
            commands[-1].append(word)
        else:
            commands.append([])
    return commands[:-1]
