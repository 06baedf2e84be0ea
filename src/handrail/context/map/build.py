"""Bringing the cache of the map up to date: what changed is read, and content not seen before is parsed."""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from handrail.context.map.languages import Language, language_of
from handrail.context.map.ranking import Source, rank
from handrail.context.map.symbols import LARGEST, Symbols, read_symbols, unpack
from handrail.storage.map_cache import KnownFile, MapCache
from handrail.workspace.beneath import opened_folder
from handrail.workspace.files import OPEN
from handrail.workspace.index import COARSE, FileStat, snapshot
from handrail.workspace.names import SECRET_FOLDERS, STATE_FOLDERS, is_secret

MOST_FILES = 50_000
BATCH = 50
FIRST_PUBLISHED = 500
"""Files read before there is a first map; then whenever there are twice as many."""
SPARE = 20_000
"""Contents kept that no file has now: those of other branches."""
SECONDS = 600.0


Guard = Callable[[bytes], AbstractContextManager[object]]


class Built(NamedTuple):
    files: int
    """That the map is about."""
    read: int
    """In this run, because they are new or look changed."""
    parsed: int
    """In this run, because nothing of this content was known."""
    complete: bool


def build(
    root: Path,
    cache: MapCache,
    *,
    guard: Guard = nullcontext,
    seconds: float = SECONDS,
) -> Built:
    """Bring the cache up to date with the workspace, or as far as the time allows.

    Each content is parsed within a `guard`.
    """
    deadline = time.monotonic() + seconds
    began = time.time_ns()
    wanted = _wanted(root)
    known = cache.files()
    if gone := known.keys() - wanted.keys():
        cache.forget(gone)
    stale = [path for path, found in wanted.items() if path not in known or known[path].stat != _text(found)]
    # Latest first: what was worked on most recently is what the next turn is about.
    stale.sort(key=lambda path: -wanted[path].mtime_ns)
    reading = _Reading(root, cache, known, guard)
    ready, next_published = len(wanted) - len(stale), FIRST_PUBLISHED
    for start in range(0, len(stale), BATCH):
        if time.monotonic() > deadline:
            break
        batch = stale[start : start + BATCH]
        reading.read({path: _settled(wanted[path], began) for path in batch})
        if reading.files >= next_published and start + BATCH < len(stale):
            next_published = 2 * reading.files
            _publish(cache, len(wanted), ready + reading.files)
    if gone or reading.changed or not known:
        _publish(cache, len(wanted), ready + reading.files)
        cache.tidy(SPARE)
    return Built(len(wanted), reading.files, reading.parsed, reading.files == len(stale))


class _Reading:
    """Reads files into the cache, a batch at a time."""

    def __init__(
        self,
        root: Path,
        cache: MapCache,
        known: Mapping[str, KnownFile],
        guard: Guard,
    ) -> None:
        self.files = 0
        self.parsed = 0
        self.changed = False
        self._known = known
        self._root = root
        self._cache = cache
        self._seen = cache.hashes()
        self._guard = guard

    def read(self, batch: dict[str, str]) -> None:
        """Take in files, each with the text of its stat."""
        files, symbols = [], []
        for path, told in batch.items():
            language = language_of(path)
            data = _data(self._root, path)
            if language is None or data is None:
                continue
            digest = hashlib.sha256(f"{language.module} {language.grammar}\n".encode() + data).digest()[:16]
            if digest not in self._seen:
                self._seen.add(digest)
                symbols.append((digest, self._symbols(digest, data, language).pack()))
            before = self._known.get(path)
            self.changed = self.changed or before is None or before.hash != digest
            files.append((path, KnownFile(told, digest)))
        self._cache.keep(files, symbols)
        self.files += len(batch)

    def _symbols(self, digest: bytes, data: bytes, language: Language) -> Symbols:
        self.parsed += 1
        with self._guard(digest):
            return read_symbols(data, language)


def _publish(cache: MapCache, files: int, read: int) -> None:
    def sources() -> Iterator[Source]:
        for path, data in cache.symbols():
            if language := language_of(path):
                yield Source(path, language.module, unpack(data))

    cache.publish(rank(sources), {"files": files, "read": read})


def _wanted(root: Path) -> dict[str, FileStat]:
    index = snapshot(root)
    found = {path: told for path, told in index.files.items() if _belongs(path, told)}
    if len(found) > MOST_FILES:
        latest = sorted(found, key=lambda path: -found[path].mtime_ns)[:MOST_FILES]
        found = {path: found[path] for path in latest}
    return found


def _belongs(path: str, told: FileStat) -> bool:
    """Whether the map may speak of the file: source that a person wrote, with a name that can be shown."""
    if language_of(path) is None or not stat.S_ISREG(told.mode) or told.size > LARGEST:
        return False
    *folders, name = path.split("/")
    hidden = any(folder.lower() in SECRET_FOLDERS + STATE_FOLDERS for folder in folders)
    return path.isprintable() and not hidden and not is_secret(name)


def _text(told: FileStat) -> str:
    return " ".join(map(str, told))


def _settled(told: FileStat, began: int) -> str:
    """What the file is known by; nothing where it was written so lately that it could look the same again."""
    return _text(told) if max(told.mtime_ns, told.ctime_ns) < began - COARSE else ""


def _data(root: Path, path: str) -> bytes | None:
    """What is in the file now; None where it went away."""
    target = root / path
    try:
        with opened_folder(target.parent, root=root) as folder:
            descriptor = os.open(target.name, OPEN, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(LARGEST + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None
