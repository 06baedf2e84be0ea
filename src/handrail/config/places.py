"""Where Handrail keeps things on this machine."""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from handrail.protocol.errors import ConfigProblem

WORKSPACE_SETTINGS = Path(".handrail", "config.toml")
"""Settings that come with a folder, below it. They may only narrow."""


class Places(NamedTuple):
    """The user's own files. Nothing here exists until something is kept in it."""

    data: Path
    settings: Path
    credentials: Path


def find_places(environ: Mapping[str, str]) -> Places:
    """Where the user's data and settings are: below `HANDRAIL_HOME`, or where XDG says."""
    if chosen := environ.get("HANDRAIL_HOME"):
        data = settings = Path(os.path.abspath(_with_home(chosen, environ)))
    else:
        data = _xdg("XDG_DATA_HOME", ".local/share", environ) / "handrail"
        settings = _xdg("XDG_CONFIG_HOME", ".config", environ) / "handrail"
    return Places(data, settings / "config.toml", settings / "credentials.toml")


def workspace_folder(places: Places, workspace: Path) -> Path:
    """The folder for what is kept about a workspace, made if need be; the same for every path to it."""
    return make_private(workspace_path(places, workspace))


def workspace_path(places: Places, workspace: Path) -> Path:
    """Where that folder is, whether or not it was made."""
    real = workspace.resolve()
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:12]
    name = re.sub(r"[^\w.-]", "_", real.name)[:40] or "root"
    return places.data / "workspaces" / f"{name}-{digest}"


def make_private(folder: Path) -> Path:
    """The folder, made with its missing parents so that only the user can look inside."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        for parent in reversed(missing):
            parent.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(f"{folder} is a file")
    except OSError as error:
        raise ConfigProblem(
            f"Handrail cannot make its folder {folder} ({error.strerror or error}). "
            "Make it writable, or set HANDRAIL_HOME to a folder that is."
        ) from error
    return folder


def _xdg(variable: str, usual: str, environ: Mapping[str, str]) -> Path:
    chosen = environ.get(variable, "")
    # The XDG rules say that a relative path is to be ignored.
    return Path(chosen) if os.path.isabs(chosen) else _home(environ) / usual


def _with_home(path: str, environ: Mapping[str, str]) -> Path:
    return _home(environ) / path[2:] if path.startswith("~/") else Path(path)


def _home(environ: Mapping[str, str]) -> Path:
    if home := environ.get("HOME"):
        return Path(home)
    try:
        return Path.home()
    except RuntimeError as error:
        raise ConfigProblem(
            "There is no home folder for this user. Set HANDRAIL_HOME to a folder."
        ) from error
