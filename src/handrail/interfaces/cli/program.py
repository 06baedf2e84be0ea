"""How this program was called, so that what it tells the user to type works."""

import shlex
import shutil
import sys
from pathlib import Path

NAME = "handrail"


def program() -> str:
    """`handrail` where the shell finds it, else what was typed to start this process."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return NAME if shutil.which(NAME) else f"{shlex.quote(sys.executable)} -P -m {NAME}"
    return NAME if shutil.which(NAME) else shlex.quote(str(called))


def elsewhere(workspace: Path) -> str:
    """` -C FOLDER` where the shell is in another folder."""
    try:
        here = Path.cwd() == workspace
    except FileNotFoundError:
        here = False
    return "" if here else f" -C {shlex.quote(str(workspace))}"
