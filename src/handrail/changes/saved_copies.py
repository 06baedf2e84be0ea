"""Copies of all workspace files, in one file on disk, taken before the commands of mode `sandbox`.

They are Handrail's own: no command can read or write them. A file that looks the same is not copied again.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import msgpack

from handrail.config.open_file import open_file
from handrail.protocol.values import Value
from handrail.storage.copy_pack import AbandonedPack, CopyPack, abandoned_packs
from handrail.workspace.file_step import LINK_MARK, MAX_BYTES
from handrail.workspace.paths import open_folder
from handrail.workspace.sensitive_names import SECRET_FOLDERS, is_secret_name
from handrail.workspace.stat_index import FileStat, StatIndex, stat_of

MAX_SAVED_BYTES = 512_000_000
MAX_SAVED_FILES = 100_000


Kept = TypeVar("Kept")


class FileCopy(NamedTuple):
    found: FileStat
    data: bytes


class SavedPlace(NamedTuple):
    found: FileStat
    offset: int
    size: int


def may_hold_secret(path: str) -> bool:
    parts = path.lower().split("/")
    return _is_secret_name(parts[-1]) or not _SECRET_FOLDERS.isdisjoint(parts)


_SECRET_FOLDERS = frozenset(SECRET_FOLDERS)
_is_secret_name = lru_cache(maxsize=50_000)(is_secret_name)  # asked about every file before every command


def files_to_save(
    index: StatIndex, readable: Collection[str], room: int = MAX_SAVED_BYTES, saved: Collection[str] = ()
) -> list[str]:
    """The files that are copied: those that git ignores, and caches, only if there is room left.

    Those that are `saved` already come first, so that new files do not take their place.
    """
    chosen: list[str] = []
    ordinary = [path for path in index.files if path not in index.ignored]
    for path in sorted((*ordinary, *index.ignored), key=lambda path: path not in saved):
        found = index.files[path]
        if len(chosen) == MAX_SAVED_FILES:
            break
        if found.size > min(MAX_BYTES, room) or not _is_copyable(found):
            continue
        if path in readable or not may_hold_secret(path):
            chosen.append(path)
            room -= found.size
    return chosen


def _is_copyable(found: FileStat) -> bool:
    return stat.S_ISREG(found.mode) or stat.S_ISLNK(found.mode)


class SavedView(NamedTuple):
    """The copies as they were at one moment; later copies are added behind them."""

    descriptor: int
    places: Mapping[str, SavedPlace]

    def __contains__(self, path: object) -> bool:
        return path in self.places

    def read(self, path: str) -> bytes | None:
        place = self.places[path]
        data = os.pread(self.descriptor, place.size, place.offset)
        return data if len(data) == place.size else None


class SavedCopies:
    """The copies of one workspace."""

    def __init__(self, parent: Path) -> None:
        self._pack = CopyPack(parent)
        self._places: dict[str, SavedPlace] = {}

    def update(self, root: Path, index: StatIndex, readable: Collection[str], *, in_use: bool) -> SavedView:
        """Copy what is new or may have changed since the last time; `in_use`: earlier views are needed."""
        if self._pack.size > 2 * MAX_SAVED_BYTES and not in_use:  # most of it is old
            self._places = {}
            self._pack.clear()
        old, self._places = self._places, {}
        unread = []
        for path in files_to_save(index, readable, min(MAX_SAVED_BYTES, self._pack.room), old):
            place = old.get(path)
            # A file written at the time of the snapshot may have been written again with the same times.
            if place and place.found == index.files[path] and path not in index.sums:
                self._places[path] = place
            else:
                unread.append(path)
        for path, copy in read_copies(root, unread, index.files):
            offset = self._pack.add(copy.data)
            if offset is not None:
                self._places[path] = SavedPlace(copy.found, offset, len(copy.data))
        return SavedView(self._pack.descriptor, self._places)

    def note(self, journal: "CommandJournal") -> None:
        """Remember on disk that a command begins."""
        self._pack.write_journal(msgpack.encode(journal))

    def forget(self) -> None:
        self._pack.remove_journal()

    def close(self) -> None:
        self._pack.close()


class CommandJournal(Value):
    """A command that has begun, and the workspace before it. Paths are bytes: they need not be UTF-8."""

    session_id: str
    turn_id: str
    call_id: str
    command: str
    began_ns: int
    files: dict[bytes, FileStat]
    sums: dict[bytes, str]
    folders: dict[bytes, int]
    unentered: tuple[bytes, ...]
    places: dict[bytes, SavedPlace]
    readable: tuple[bytes, ...]
    cut: bool

    @property
    def index(self) -> StatIndex:
        unentered = tuple(map(os.fsdecode, self.unentered))
        files, sums, folders = _text_keys(self.files), _text_keys(self.sums), _text_keys(self.folders)
        return StatIndex(files, sums, unentered, self.cut, folders)


def _text_keys(found: Mapping[bytes, Kept]) -> dict[str, Kept]:
    return {os.fsdecode(path): each for path, each in found.items()}


def _bytes_keys(found: Mapping[str, Kept]) -> dict[bytes, Kept]:
    return {os.fsencode(path): each for path, each in found.items()}


def journal_of(
    index: StatIndex, view: SavedView, readable: Collection[str], began_ns: int, **ids: str
) -> CommandJournal:
    return CommandJournal(
        **ids,
        began_ns=began_ns,
        files=_bytes_keys(index.files),
        sums=_bytes_keys(index.sums),
        folders=_bytes_keys(index.folders),
        unentered=tuple(map(os.fsencode, index.unentered)),
        places=_bytes_keys(view.places),
        readable=tuple(map(os.fsencode, readable)),
        cut=index.cut,
    )


class InterruptedCommand(NamedTuple):
    journal: CommandJournal
    saved: SavedView
    pack: AbandonedPack


@contextmanager
def interrupted_commands(parent: Path) -> Iterator[list[InterruptedCommand]]:
    """Commands whose process was killed; what is not kept is forgotten after the block."""
    found: list[InterruptedCommand] = []
    with abandoned_packs(parent) as packs:
        for pack in packs:
            with suppress(ValueError):  # there was no command, or another version wrote it
                journal = msgpack.decode(pack.journal, type=CommandJournal)
                view = SavedView(pack.descriptor, _text_keys(journal.places))
                found.append(InterruptedCommand(journal, view, pack))
        yield found


def read_copies(
    root: Path, paths: Iterable[str], files: Mapping[str, FileStat]
) -> Iterator[tuple[str, FileCopy]]:
    """The content of each file and link that has not changed since it was found."""
    for folder, members in groupby(paths, key=os.path.dirname):
        try:
            with open_folder(root / folder, root=root) as opened:
                for path in members:
                    data = _bytes(opened, os.path.basename(path), files[path])
                    if data is not None:
                        yield path, FileCopy(files[path], data)
        except OSError:
            continue


def _bytes(folder: int, name: str, found: FileStat) -> bytes | None:
    try:
        if stat.S_ISLNK(found.mode):
            target = os.fsencode(os.readlink(name, dir_fd=folder))
            now = stat_of(os.stat(name, dir_fd=folder, follow_symlinks=False))
            return LINK_MARK + target if now == found else None
        with open_file(name, folder=folder, follow=False) as file:
            data = file.read(found.size + 1)
            now = stat_of(os.fstat(file.descriptor))
    except OSError:
        return None
    return data if len(data) == found.size and now == found else None
