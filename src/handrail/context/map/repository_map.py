"""The repository map of one workspace: read in a moment when a turn begins, built when a turn has ended."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from handrail.context.map.shown import SMALLEST, MapPart, map_part
from handrail.context.mentions import mentioned
from handrail.models.base import Capabilities
from handrail.protocol.errors import PathProblem
from handrail.sessions.state import State
from handrail.storage.map_cache import read_published
from handrail.workspace.files import Workspace
from handrail.workspace.walk import UNSEEN

FILE = "map.db"
BUILDER = "handrail.context.map.builder"
ROWS = 200
PLAYED = 30
"""Files seen last that count as being in play."""
FEW_WORDS = 3
"""A message of fewer words, such as a greeting, comes without a map."""
WINDOW_SHARE = 16
LOOKED_AT = 500


class RepositoryMap:
    """What the model is told about files that it has not seen."""

    def __init__(self, workspace: Workspace, folder: Path, tokens: int) -> None:
        """`folder` is where things about the workspace are kept; no `tokens`, no map."""
        self._workspace = workspace
        self._file = folder / FILE
        self._tokens = tokens
        self._worth = False
        self._usable = tokens > 0

    def part(self, state: State, message: str, can: Capabilities) -> MapPart:
        """What goes with a message. Costs the same whatever the size of the repository."""
        tokens = 0 if can.one_action else min(self._tokens, can.context_window // WINDOW_SHARE)
        self._usable, names = tokens > 0, mentioned(message)
        if not tokens or not (names or len(message.split()) >= FEW_WORDS):
            return MapPart()
        played = [*list(state.files.files)[-PLAYED:], *self._inside(names)]
        return map_part(
            read_published(self._file, ROWS, played[-PLAYED:]),
            played=set(played),
            shown={path for path, seq in state.mapped.items() if seq > state.cut.upto},
            tokens=tokens,
            exists=lambda path: os.path.lexists(self._workspace.root / path),
        )

    def refresh(self, environ: Mapping[str, str] = os.environ) -> None:
        """Have the map brought up to date by a process of its own that nobody waits for.

        Where no model is shown it, or the repository is small, nothing is started.
        """
        self._worth = self._worth or (self._usable and self._is_worth_it())
        if self._usable and self._worth:
            from handrail.tools.background import start_in_background

            words = [str(self._workspace.root), str(self._file)]
            start_in_background(BUILDER, words, self._file.parent, environ)

    def _inside(self, names: Iterable[str]) -> list[str]:
        found = []
        for name in names:
            with suppress(PathProblem):
                found.append(self._workspace.resolve(name))
        return [place.path for place in found if place.inside]

    def _is_worth_it(self) -> bool:
        """Whether there are enough source files, or more files than are worth counting first."""
        from handrail.context.map.languages import language_of

        folders, looked_at, sources = [str(self._workspace.root)], 0, 0
        for folder in folders:
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    looked_at += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders += [entry.path] if entry.name not in UNSEEN else []
                    elif language_of(entry.name):
                        sources += 1
                    if sources == SMALLEST or looked_at == LOOKED_AT:
                        return True
        return False
