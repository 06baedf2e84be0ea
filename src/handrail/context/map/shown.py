"""The part of the map that goes with a message: what fits, and a word on what does not."""

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

from handrail.context.budget import BYTES_PER_TOKEN
from handrail.storage.map_cache import Published, Ranked

SMALLEST = 10
"""Source files of a repository that needs a map; a smaller one is seen at a glance."""
LATER = 0.25
"""The share of the budget that what came near since may have, once a map has been shown."""
NEARNESS, SAME_FOLDER = 2.0, 0.5
FIRST = "Repository map. Each file with what it defines, the most used first{}:"
SINCE = "More of the repository map, near the files in play{}:"
UNFINISHED = " (not complete: {read:,} of {files:,} source files have been read so far)"


class MapPart(NamedTuple):
    """A fragment, and the files that it tells about."""

    text: str = ""
    paths: tuple[str, ...] = ()
    """Empty while the map is not complete, so that it is shown again when it is."""


def map_part(
    published: Published,
    *,
    played: Collection[str],
    shown: Collection[str],
    tokens: int,
    exists: Callable[[str], bool],
) -> MapPart:
    """What to tell about the repository, given the files that the model knows and those told about before."""
    files, read = published.counts.get("files", 0), published.counts.get("read", 0)
    if files < SMALLEST:
        return MapPart()
    later = bool(shown)
    rows = _ordered(published, played, only_near=later)
    wanted = (row for row in rows if row.path not in shown and row.path not in played and exists(row.path))
    unfinished = UNFINISHED.format(read=read, files=files) if read < files else ""
    header = (SINCE if later else FIRST).format(unfinished)
    room = int(tokens * BYTES_PER_TOKEN * (LATER if later else 1.0)) - len(header) - len(_more(files)) - 4
    lines, paths = [], []
    for row in wanted:
        line = f"{row.path}: {row.outline}" if row.outline else row.path
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
        paths.append(row.path)
    if not lines:
        return MapPart()
    left = files - len(lines) - len(shown) - sum(path not in shown for path in played)
    end = [_more(left)] if left > 0 else []
    text = "\n".join([f"[{header}", *lines, *end]) + "]"
    return MapPart(text, () if unfinished else tuple(paths))


def _more(files: int) -> str:
    return f"... {files:,} more files: list, glob and search find them."


def _ordered(published: Published, played: Collection[str], *, only_near: bool) -> list[Ranked]:
    near = {row.path: weight for row, weight in published.near}
    rows = {row.path: row for row, _ in published.near}
    if not only_near:
        rows |= {row.path: row for row in published.best}
    folders = {path.rpartition("/")[0] for path in played}

    def weight(row: Ranked) -> float:
        closeness = NEARNESS * math.log1p(10 * near.get(row.path, 0.0))
        beside = SAME_FOLDER * (row.path.rpartition("/")[0] in folders)
        return math.log1p(row.score) + closeness + beside

    return sorted(rows.values(), key=lambda row: (-weight(row), row.path))
