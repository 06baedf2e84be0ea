"""What a workspace brings with it that counts in full only once the user has trusted exactly these bytes."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from handrail.config.hooks import files_named
from handrail.config.places import WORKSPACE_SETTINGS, Places, make_private, workspace_path
from handrail.config.toml_file import read_bytes

SOURCES = (WORKSPACE_SETTINGS,)
"""All that can run a program, widen a permission, or change an endpoint or a credential."""
FILE = "trust.json"


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
    try:
        kept = json.loads(_file(places, workspace).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict):
        return {}
    return {name: value for name, value in kept.items() if isinstance(value, str)}


def trust(places: Places, workspace: Path, brought: Iterable[Brought]) -> None:
    """Remember that the user trusts these bytes, and nothing else in this workspace."""
    file = _file(places, workspace)
    make_private(file.parent)
    text = json.dumps({each.name: each.sha256 for each in brought}, indent=1)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f"{FILE}.")
    try:
        with os.fdopen(handle, "w") as opened:
            opened.write(text + "\n")
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def revoke(places: Places, workspace: Path) -> bool:
    """Trust nothing here any more; whether anything was trusted."""
    try:
        _file(places, workspace).unlink()
    except FileNotFoundError:
        return False
    return True


def _name(file: Path, workspace: Path) -> str:
    return file.relative_to(os.path.realpath(workspace)).as_posix()


def _file(places: Places, workspace: Path) -> Path:
    return workspace_path(places, workspace) / FILE
