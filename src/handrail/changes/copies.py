"""What files held before a command: of those that nothing else could bring back, in memory, up to a limit."""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from handrail.workspace.beneath import opened_folder
from handrail.workspace.found import READ
from handrail.workspace.index import FileStat, StatIndex, stat_of
from handrail.workspace.names import SECRET_FOLDERS, is_secret

EACH = 256_000
"""Bytes of a file that is copied."""
EACH_KNOWN = 1_000_000
"""The same of one that the session has shown or changed; no larger one can be edited."""
MOST_FILES = 2_000
MOST_BYTES = 20_000_000


class Copy(NamedTuple):
    found: FileStat
    data: bytes


Copies = Mapping[str, Copy]


def take_copies(
    root: Path,
    index: StatIndex,
    *,
    earlier: Copies,
    known: Collection[str],
    elsewhere: Callable[[str, FileStat], bool],
) -> Copies:
    """Copies of files that are not kept `elsewhere`, known ones first; what did not change is not read."""
    taken: dict[str, Copy] = {}
    room = MOST_BYTES
    first = [path for path in known if path in index.files]
    for limit, paths in ((EACH_KNOWN, first), (EACH, index.files)):
        wanted = (
            path
            for path in paths
            if path not in taken
            and (found := index.files[path]).size <= limit
            and not elsewhere(path, found)
            and stat.S_ISREG(found.mode)
        )
        for path, copy in _copies(root, index, wanted, earlier):
            if len(taken) == MOST_FILES or len(copy.data) > room:
                return taken
            taken[path] = copy
            room -= len(copy.data)
    return taken


def may_hold_secret(path: str) -> bool:
    """Whether a file's content is better kept nowhere."""
    parts = PurePosixPath(path.lower()).parts
    return is_secret(parts[-1]) or any(folder in parts for folder in SECRET_FOLDERS)


def _copies(
    root: Path, index: StatIndex, paths: Iterable[str], earlier: Copies
) -> Iterator[tuple[str, Copy]]:
    for folder, members in groupby(paths, key=os.path.dirname):
        unread = []
        for path in members:
            copy = earlier.get(path)
            # A file as new as the look at it may have been written again without looking any different.
            if copy and copy.found == index.files[path] and path not in index.sums:
                yield path, copy
            elif not may_hold_secret(path):
                unread.append(path)
        if unread:
            yield from _read(root, folder, unread, index.files)


def _read(
    root: Path, folder: str, paths: list[str], files: Mapping[str, FileStat]
) -> Iterator[tuple[str, Copy]]:
    try:
        with opened_folder(root / folder, root=root) as opened:
            for path in paths:
                data = _bytes(opened, os.path.basename(path), files[path])
                if data is not None:
                    yield path, Copy(files[path], data)
    except OSError:
        return


def _bytes(folder: int, name: str, found: FileStat) -> bytes | None:
    """All of a file that is still the one that was found."""
    try:
        with open(os.open(name, READ, dir_fd=folder), "rb", buffering=0) as file:
            data = file.read(found.size + 1)
            now = stat_of(os.fstat(file.fileno()))
    except OSError:
        return None
    return data if data is not None and len(data) == found.size and now == found else None
