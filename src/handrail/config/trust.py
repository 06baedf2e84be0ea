"""What a workspace brings with it that counts in full only once the user has trusted exactly these bytes."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from handrail.config.hooks import files_named
from handrail.config.places import WORKSPACE_SETTINGS, Places, make_private, workspace_path
from handrail.config.toml_file import read_bytes

SOURCES = (WORKSPACE_SETTINGS,)
"""All that can run a program, widen a permission, or change an endpoint or a credential.

Agents are trusted one by one, by the hash of all their files, when somebody wants to use one.
"""
FILE = "trust.json"
AGENTS_FILE = "trusted-agents.json"


class Brought(NamedTuple):
    """A file of the workspace as it was when it was read; what is used are these bytes."""

    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def brought_by(workspace: Path) -> tuple[Brought, ...]:
    """What is there that needs trust, each file read once; raises ConfigProblem for what is no file."""
    found: list[Brought] = []
    for source in SOURCES:
        if (data := read_bytes(workspace / source)) is not None:
            found.append(Brought(source.as_posix(), data))
            for file in files_named(data, (workspace / source).parent, workspace):
                content = read_bytes(file)
                found += [Brought(_name(file, workspace), content)] if content is not None else []
    return tuple(found)


def trusted_before(places: Places, workspace: Path) -> dict[str, str]:
    """The hash of each file that the user trusted; what cannot be read was not trusted."""
    return _kept(_file(places, workspace))


def trusted_agents(places: Places, workspace: Path) -> dict[str, str]:
    """The hash of each agent of the workspace that the user trusted, by its name."""
    return _kept(_file(places, workspace, AGENTS_FILE))


def trust(places: Places, workspace: Path, brought: Iterable[Brought]) -> None:
    """Remember that the user trusts these bytes, and nothing else of the workspace's settings."""
    _keep(_file(places, workspace), {each.name: each.sha256 for each in brought})


def trust_agents(places: Places, workspace: Path, hashes: Mapping[str, str]) -> None:
    """Remember that the user trusts these agents as they are now, besides those that are trusted."""
    file = _file(places, workspace, AGENTS_FILE)
    _keep(file, {**_kept(file), **hashes})


def _kept(file: Path) -> dict[str, str]:
    try:
        kept = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict):
        return {}
    return {name: value for name, value in kept.items() if isinstance(value, str)}


def _keep(file: Path, hashes: Mapping[str, str]) -> None:
    make_private(file.parent)
    text = json.dumps(hashes, indent=1)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")
    try:
        with os.fdopen(handle, "w") as opened:
            opened.write(text + "\n")
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def revoke(places: Places, workspace: Path) -> bool:
    """Trust nothing here any more; whether anything was trusted."""
    found = [file for name in (FILE, AGENTS_FILE) if (file := _file(places, workspace, name)).exists()]
    for file in found:
        file.unlink(missing_ok=True)
    return bool(found)


def _name(file: Path, workspace: Path) -> str:
    return file.relative_to(os.path.realpath(workspace)).as_posix()


def _file(places: Places, workspace: Path, name: str = FILE) -> Path:
    return workspace_path(places, workspace) / name
