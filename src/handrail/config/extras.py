"""How to install what an optional part of Handrail needs, into the Python that runs it."""

import shlex
import sys
from pathlib import Path

CLONE = Path(__file__).parents[3]


def install_command(extra: str, *more: str, clone: Path = CLONE) -> str:
    """The command that installs an extra, and more packages, as it is to be typed in a shell.

    Packages are named by the clone that runs, or one by one: no index has a package of Handrail's.
    """
    if (clone / "pyproject.toml").is_file():
        wanted = ["--editable", f"{clone}[{extra}]"]
    else:
        from importlib.metadata import requires

        marked = (each.partition(";") for each in requires("handrail") or ())
        wanted = [name.strip() for name, _, marker in marked if f"'{extra}'" in marker.replace('"', "'")]
    return shlex.join([sys.executable, "-m", "pip", "install", *wanted, *more])
