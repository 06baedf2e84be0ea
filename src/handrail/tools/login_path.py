"""The PATH of the user's login shell, for a Handrail that an editor or the desktop started.

Such a process has the PATH of the system alone, and nothing that the user's profile adds. The profile is a
program of the user's that may print, ask or hang: it has a deadline, and only what stands between two marks
counts.
"""

import os
import pwd
import re
import secrets
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from handrail.tools.process import run_for_output
from handrail.tools.secrets import without_secrets

PLAIN_FOLDERS = frozenset(
    f"{root}{name}" for root in ("", "/usr", "/usr/local") for name in ("/bin", "/sbin", "/games")
) | {"/snap/bin"}
SECONDS = 5.0
"""For both attempts together."""
ATTEMPTS = (("-i", "-l"), ("-l",))
"""Many set their PATH only for interactive shells; where such a shell fails, as a login shell alone."""
SHELLS = ("bash", "dash", "fish", "ksh", "mksh", "sh", "zsh")
"""Those that take these options, and `"$PATH"` with colons."""
MAX_OUTPUT = 1_000_000
MAX_PATH = 32_000


async def use_login_path(environ: Mapping[str, str] | None = None) -> str:
    """Give this process, and so its children, the PATH of the login shell, where its own is poor.

    Returns why it could not be read, empty otherwise; nothing is changed then.
    """
    environ = os.environ if environ is None else environ
    if any(map(os.isatty, (0, 1, 2))) or not is_poor(environ.get("PATH", "")):
        return ""
    found = await read_login_path(environ)
    if not found:
        return "The PATH of your login shell could not be read; commands get the system's alone."
    os.environ["PATH"] = joined(found, environ.get("PATH", ""))
    return ""


def is_poor(path: str) -> bool:
    """Whether it has folders of the system alone, as a desktop gives it."""
    return all(folder.rstrip("/") in PLAIN_FOLDERS for folder in path.split(os.pathsep) if folder)


def joined(first: str, then: str) -> str:
    """The absolute folders of both, each once."""
    folders = [*first.split(os.pathsep), *then.split(os.pathsep)]
    return os.pathsep.join(dict.fromkeys(each for each in folders if os.path.isabs(each)))


async def read_login_path(environ: Mapping[str, str], seconds: float = SECONDS) -> str:
    """The PATH that the user's login shell has; empty if it cannot be had in so many seconds."""
    shell = login_shell(environ)
    if shell.name not in SHELLS:
        return ""
    mark, deadline = secrets.token_hex(16), time.monotonic() + seconds
    # Where the folder has a say (direnv, version managers), it is not the workspace's.
    home = environ.get("HOME", "/")
    environment = {**without_secrets(environ), "TERM": "dumb"}
    for attempt, options in enumerate(ATTEMPTS, start=1):
        left = deadline - time.monotonic()
        output = await run_for_output(
            [str(shell), *options, "-c", f"printf '%s%s%s' {mark} \"$PATH\" {mark}"],
            folder=Path(home if os.path.isdir(home) else "/"),
            environment=environment,
            timeout=left / 2 if attempt < len(ATTEMPTS) else left,
            limit=MAX_OUTPUT,
        )
        found = re.search(
            rf"{mark}([^\x00-\x1f]{{1,{MAX_PATH}}}){mark}", output.data.decode(errors="replace")
        )
        if found and "\ufffd" not in found[1] and any(map(os.path.isabs, found[1].split(os.pathsep))):
            return found[1]
    return ""


def login_shell(environ: Mapping[str, str]) -> Path:
    """The user's shell: what `SHELL` names, else the one of their account."""
    named = environ.get("SHELL", "")
    if os.path.isabs(named) and os.access(named, os.X_OK):
        return Path(named)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh")
    except KeyError:  # as in a container with any user id
        return Path("/bin/sh" if sys.platform != "darwin" else "/bin/zsh")
