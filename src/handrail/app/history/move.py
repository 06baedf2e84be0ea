"""Copy the sessions of a workspace from the file on this machine into a database."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from handrail.config.layers import load_settings
from handrail.config.places import find_places, workspace_folder
from handrail.protocol.errors import UsageProblem
from handrail.storage.copy_log import CopiedLog, copy_log
from handrail.storage.log_repair import open_log


class MovedSessions(NamedTuple):
    copied: CopiedLog
    file: Path
    """It stays as it was."""
    database: str
    """Without the password."""


def copy_sessions(workspace: Path, url: str, environ: Mapping[str, str]) -> MovedSessions:
    """Copy all sessions into the database at `url`; raises UsageProblem where there are none."""
    if not url:
        raise UsageProblem("--to is empty. Name the database: --to postgresql://USER@HOST/DATABASE")
    places = find_places(environ)
    database = load_settings(
        places, workspace, environ=environ, flags={"database.url": url}
    ).settings.database
    folder = workspace_folder(places, workspace)
    file = folder / "log.db"
    if not file.exists():
        raise UsageProblem(f"There is nothing to copy: {file} does not exist.")
    source = open_log(folder)
    try:
        target = open_log(folder, database, workspace)
        try:
            return MovedSessions(copy_log(source, target), file, target.database.place)
        finally:
            target.close()
    finally:
        source.close()
