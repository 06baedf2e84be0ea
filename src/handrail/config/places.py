"""Where Handrail keeps the user's data, settings and keys on this machine."""

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from handrail.protocol.errors import ConfigProblem

WORKSPACE_SETTINGS = Path(".handrail", "config.toml")
"""Below the workspace. These settings may only narrow permissions."""


class Places(NamedTuple):
    """The user's own files and folders; they may not exist yet."""

    data: Path
    settings: Path
    credentials: Path
    """Encrypted; see `config/credentials.py`."""


def find_places(environ: Mapping[str, str]) -> Places:
    """Where the user's data and settings are: below `HANDRAIL_HOME`, or where XDG says."""
    if chosen := environ.get("HANDRAIL_HOME"):
        folder = _home(environ) / chosen[2:] if chosen.startswith("~/") else chosen
        data = settings = Path(os.path.abspath(folder))
    else:
        data = _xdg("XDG_DATA_HOME", ".local/share", environ) / "handrail"
        settings = _xdg("XDG_CONFIG_HOME", ".config", environ) / "handrail"
    return Places(data, settings / "config.toml", settings / "credentials.json")


def workspace_folder(places: Places, workspace: Path) -> Path:
    """The folder for Handrail's data about a workspace, created if needed; the same for every path to it."""
    return make_private(workspace_path(places, workspace))


def workspace_path(places: Places, workspace: Path) -> Path:
    """Where that folder is, whether or not it exists."""
    real = workspace.resolve()
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:12]
    name = re.sub(r"[^\w.-]", "_", real.name)[:40] or "root"
    return places.data / "workspaces" / f"{name}-{digest}"


PACKAGE = Path(__file__).parents[1]


def program_paths(workspace: Path) -> tuple[Path, ...]:
    """Where the running Handrail is: package, interpreter, libraries, `rg` and `shfmt`; links not resolved.

    Only what lies in the workspace, or has the workspace in it.
    """
    prefixes = [Path(sys.prefix), Path(sys.base_prefix)]
    bin_folder = Path(sys.executable).parent
    imported = [Path(each) for each in sys.path if os.path.isabs(each) and os.path.isdir(each)]
    found: list[Path] = []
    for path in (PACKAGE, bin_folder, Path(sys.prefix, "pyvenv.cfg"), *prefixes, *imported):
        inside = any(each != workspace and each.is_relative_to(workspace) for each in (path, path.resolve()))
        # A workspace may be in a folder from which programs are run or imported, or be a virtual environment.
        libraries = path in imported and any(path != each and path.is_relative_to(each) for each in prefixes)
        above = workspace.is_relative_to(path.resolve()) and (path == PACKAGE or libraries)
        if inside or above:
            found.append(path)
    return tuple(dict.fromkeys(found))


def make_private(folder: Path) -> Path:
    """The folder, created with its missing parents so that only the user can look inside."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        for parent in reversed(missing):
            parent.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file")
    except OSError as error:
        raise ConfigProblem(
            f"Handrail cannot create its folder {folder} ({error.strerror or error}). "
            "Make it writable, or set HANDRAIL_HOME to a folder that is."
        ) from error
    return folder


def _xdg(variable: str, usual: str, environ: Mapping[str, str]) -> Path:
    chosen = environ.get(variable, "")
    # The XDG specification says to ignore relative paths.
    return Path(chosen) if os.path.isabs(chosen) else _home(environ) / usual


def _home(environ: Mapping[str, str]) -> Path:
    if home := environ.get("HOME"):
        return Path(home)
    try:
        return Path.home()
    except RuntimeError as error:
        raise ConfigProblem("This user has no home folder. Set HANDRAIL_HOME to a folder.") from error
