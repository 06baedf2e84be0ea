"""The repository map of a workspace: the part that goes with a message, and when to rebuild it."""

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handrail.context.mentions import mentioned_names
from handrail.context.token_budget import BYTES_PER_TOKEN
from handrail.protocol.errors import PathProblem
from handrail.sessions.session_state import SessionState
from handrail.storage.map_cache import Published, Ranked, read_published
from handrail.workspace.files import Workspace
from handrail.workspace.walk import SKIPPED_FOLDERS

MIN_FILES = 10
LATER_SHARE = 0.25
"""Share of the budget for later parts, once a map has been shown."""
NEARNESS, SAME_FOLDER = 2.0, 0.5
FIRST_HEAD = "Repository map. Each file with what it defines, the most used first"
MORE_HEAD = "More of the repository map, near the files in play"


class MapFragment(NamedTuple):
    text: str = ""
    paths: tuple[str, ...] = ()
    """Empty while the map is not complete, so that it is shown again when it is."""


def map_fragment(
    published: Published,
    *,
    played: Collection[str],
    shown: Collection[str],
    tokens: int,
    exists: Callable[[str], bool],
) -> MapFragment:
    """The part to show, given the files in play and those that were shown before."""
    files, read = published.counts.get("files", 0), published.counts.get("read", 0)
    if files < MIN_FILES:
        return MapFragment()
    later = bool(shown)
    rows = _ordered(published, played, only_near=later)
    wanted = (row for row in rows if row.path not in shown and row.path not in played and exists(row.path))
    unfinished = f" (not complete: {read:,} of {files:,} source files have been read so far)"
    header = f"{MORE_HEAD if later else FIRST_HEAD}{unfinished if read < files else ''}:"
    room = int(tokens * BYTES_PER_TOKEN * (LATER_SHARE if later else 1.0))
    room -= len(header) + len(_more(files)) + 4
    lines, paths = [], []
    for row in wanted:
        line = f"{row.path}: {row.outline}" if row.outline else row.path
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
        paths.append(row.path)
    if not lines:
        return MapFragment()
    left = files - len(lines) - len(shown) - sum(path not in shown for path in played)
    text = "\n".join([f"[{header}", *lines, *([_more(left)] if left > 0 else [])]) + "]"
    return MapFragment(text, () if read < files else tuple(paths))


def _more(files: int) -> str:
    return f"... {files:,} more files: list, glob and search find them."


def _ordered(published: Published, played: Collection[str], *, only_near: bool) -> list[Ranked]:
    near = {row.path: weight for row, weight in published.near}
    rows = {row.path: row for row, _ in published.near}
    if not only_near:
        rows |= {row.path: row for row in published.best}
    folders = {path.rpartition("/")[0] for path in played}

    def weight(row: Ranked) -> float:
        nearness = NEARNESS * math.log1p(10 * near.get(row.path, 0.0))
        return math.log1p(row.score) + nearness + SAME_FOLDER * (row.path.rpartition("/")[0] in folders)

    return sorted(rows.values(), key=lambda row: (-weight(row), row.path))


MAP_FILE = "map.db"
MAX_FILES_IN_PLAY = 30
FEW_WORDS = 3
"""Shorter messages, such as greetings, come without a map."""
WINDOW_SHARE = 16
MAX_ENTRIES_COUNTED = 500


class RepositoryMap:
    """Outlines of files that the model has not seen."""

    def __init__(self, workspace: Workspace, folder: Path, tokens: int) -> None:
        """`folder` is the workspace's data folder; with 0 `tokens` there is no map."""
        self._workspace = workspace
        self._file = folder / MAP_FILE
        self._tokens = tokens
        self._worth = False
        self._usable = tokens > 0

    def part(self, state: SessionState, message: str, window: int) -> MapFragment:
        """The part for a message, given the model's context window. Costs the same for any repository."""
        tokens = min(self._tokens, window // WINDOW_SHARE)
        self._usable, names = tokens > 0, mentioned_names(message)
        if not tokens or not (names or len(message.split()) >= FEW_WORDS):
            return MapFragment()
        played = [*list(state.files.files)[-MAX_FILES_IN_PLAY:], *self._inside(names)]
        return map_fragment(
            read_published(self._file, 200, played[-MAX_FILES_IN_PLAY:]),
            played=set(played),
            shown={path for path, seq in state.mapped.items() if seq > state.cut.upto},
            tokens=tokens,
            exists=lambda path: os.path.lexists(self._workspace.root / path),
        )

    def refresh(self, environ: Mapping[str, str] = os.environ) -> None:
        """Update the map in a background process, if a model is shown it and the repository is not small."""
        self._worth = self._worth or (self._usable and self._is_worth_it())
        if self._usable and self._worth:
            from handrail.tools.process import start_in_background

            arguments = [str(self._workspace.root), str(self._file)]
            start_in_background("handrail.context.map.builder", arguments, self._file.parent, environ)

    def _inside(self, names: Iterable[str]) -> list[str]:
        found = []
        for name in names:
            with suppress(PathProblem):
                found.append(self._workspace.resolve(name))
        return [place.path for place in found if place.inside]

    def _is_worth_it(self) -> bool:
        """Whether there are enough source files, or too many entries to count."""
        from handrail.context.map.symbols import language_of

        folders, looked_at, sources = [str(self._workspace.root)], 0, 0
        for folder in folders:
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    looked_at += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders += [entry.path] if entry.name not in SKIPPED_FOLDERS else []
                    elif language_of(entry.name):
                        sources += 1
                    if sources == MIN_FILES or looked_at == MAX_ENTRIES_COUNTED:
                        return True
        return False
