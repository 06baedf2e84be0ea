"""The tools of sources as the user has approved them: a server that changes them later needs a new yes."""

import json
from collections.abc import Mapping
from pathlib import Path

from handrail.config.files import FileLock, write_atomically
from handrail.config.open_file import read_file
from handrail.config.places import Places, make_private, workspace_path
from handrail.config.sources import Source
from handrail.protocol.errors import ConfigProblem

FILE = "source-tools.json"
MAX_BYTES = 4_000_000
LOCK_SECONDS = 5.0


class ApprovedTools:
    """{tool: hash of what the server said of it}, by source; of a workspace's sources, in each workspace."""

    def __init__(self, places: Places, workspace: Path) -> None:
        self._own = places.data / FILE
        self._shared = workspace_path(places, workspace) / FILE

    def of(self, source: Source) -> dict[str, str] | None:
        """Those that were approved; None if the source, as it is defined now, has not been used before."""
        entry = _load(self._file(source)).get(source.name)
        if not isinstance(entry, dict) or entry.get("definition") != source.sha256:
            return None
        tools = entry.get("tools")
        return tools if isinstance(tools, dict) else None

    def approve(self, source: Source, tools: Mapping[str, str]) -> None:
        file = self._file(source)
        make_private(file.parent)
        try:
            with FileLock(file.with_suffix(".lock")) as lock:
                if not lock.wait(LOCK_SECONDS):
                    raise ConfigProblem(f"Another process is changing {file}; try again.")
                known = _load(file) | {source.name: {"definition": source.sha256, "tools": dict(tools)}}
                write_atomically(file, f"{json.dumps(known, indent=1)}\n".encode())
        except OSError as error:
            raise ConfigProblem(
                f"{file} cannot be written ({error.strerror}); check its permissions."
            ) from error

    def _file(self, source: Source) -> Path:
        return self._own if source.where == "yours" else self._shared


def _load(file: Path) -> dict[str, object]:
    try:
        known = json.loads(read_file(file, MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}
