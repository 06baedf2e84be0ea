"""The program that builds the map in the background: reads changed files and ranks them.

`python -m handrail.context.map.builder ROOT CACHE`. Grammars are C code, and some files may crash them: a
content on which this process ended twice, by crash, memory or time, is left out.
"""

import hashlib
import json
import math
import resource
import signal
import stat
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

from handrail.config.open_file import open_file
from handrail.context.map.symbols import MAX_FILE_BYTES, Definition, Symbols, language_of, read_symbols
from handrail.storage.map_cache import BuildMark, CacheBroken, KnownFile, MapCache, Ranked, lock_cache
from handrail.workspace.paths import open_folder
from handrail.workspace.sensitive_names import SECRET_FOLDERS, STATE_FOLDERS, is_secret_name
from handrail.workspace.stat_index import COARSE, FileStat, snapshot

MAX_HOMES = 6
"""A name that more files define, such as `run`, does not tell which one is meant."""
PLAIN_NAME_WEIGHT = 0.2
"""Weight of private names and plain lower-case words, which often mean something else."""
MAX_NEIGHBOURS = 8
"""Files kept per file, of those it uses and of those that use it."""
OUTLINE = 130
MEMBERS = 6


class SourceFile(NamedTuple):
    path: str
    family: str
    """Files of different families do not use each other's names."""
    symbols: Symbols


class Weights(dict[str, float]):
    def add(self, name: str, weight: float) -> None:
        self[name] = self.get(name, 0.0) + weight

    def most(self) -> dict[str, float]:
        return {name: round(self[name], 2) for name in nlargest(MAX_NEIGHBOURS, self, key=self.__getitem__)}


def rank_files(sources: Callable[[], Iterable[SourceFile]]) -> Iterator[Ranked]:
    """A row for every file that defines something. Reads the sources three times, one file at a time."""
    defined: dict[tuple[str, str], list[str]] = defaultdict(list)
    used_by: Counter[tuple[str, str]] = Counter()
    for path, family, symbols in sources():
        for name in {definition.name for definition in symbols.definitions}:
            if not name.startswith("__"):
                defined[family, name].append(path)
        used_by.update((family, name) for name in symbols.names)
    uses: dict[str, Weights] = defaultdict(Weights)
    """By defining file: how much each of its names is used elsewhere."""
    used: dict[str, Weights] = defaultdict(Weights)
    """By file: how much it uses each other file; `users` is the reverse."""
    users: dict[str, Weights] = defaultdict(Weights)
    for path, family, symbols in sources():
        for name in symbols.names:
            homes = defined.get((family, name), ())
            if 0 < len(homes) <= MAX_HOMES and path not in homes:
                weight = _distinct(name) / len(homes) / math.sqrt(used_by[family, name])
                for home in homes:
                    uses[home].add(name, weight)
                    used[path].add(home, weight)
                    users[home].add(path, weight)
    for path, _, symbols in sources():
        if symbols.definitions:
            score = round(sum(uses[path].values()), 2)
            near = json.dumps(used[path].most() | users[path].most())
            yield Ranked(path, score, outline(symbols.definitions, uses[path]), near)


def _distinct(name: str) -> float:
    return PLAIN_NAME_WEIGHT if name.startswith("_") or (name.isalpha() and name.islower()) else 1.0


def outline(definitions: Iterable[Definition], uses: Mapping[str, float]) -> str:
    """The names of a file, most used first, with the members of classes, as many as fit on a line."""
    tops: dict[str, list[str]] = {}
    for definition in definitions:
        if not definition.owner:
            tops.setdefault(definition.name, [])
        elif not definition.name.startswith("_"):
            tops.setdefault(definition.owner, []).append(definition.name)

    def weight(name: str) -> tuple[float, bool]:
        return -sum(uses.get(each, 0.0) for each in (name, *tops[name])), name.startswith("_")

    line = ""
    ordered = sorted(tops, key=weight)
    for number, name in enumerate(ordered):
        members = sorted(dict.fromkeys(tops[name]), key=lambda each: -uses.get(each, 0.0))
        shown = " ".join(members[:MEMBERS]) + (" …" if len(members) > MEMBERS else "")
        piece = f"{name}({shown})" if members else name
        if len(line) + len(piece) > OUTLINE:
            piece = name if len(line) + len(name) <= OUTLINE else ""
        if not piece:
            return f"{line}, +{len(ordered) - number}" if line else ""
        line += f", {piece}" if line else piece
    return line


MAX_FILES = 50_000
BATCH = 50
FIRST_PUBLISHED = 500
"""Files read before the first map is published; then again each time their number has doubled."""
BUILD_SECONDS = 600.0


Guard = Callable[[bytes], AbstractContextManager[object]]


class BuildResult(NamedTuple):
    """Files in the map, files read because they look changed, files parsed because their content is new."""

    files: int
    read: int
    parsed: int
    complete: bool


def build_map(
    root: Path, cache: MapCache, *, guard: Guard = nullcontext, seconds: float = BUILD_SECONDS
) -> BuildResult:
    """Update the cache from the workspace, as far as time allows. Each content is parsed within a `guard`."""
    deadline = time.monotonic() + seconds
    began = time.time_ns()
    wanted = _files_to_read(root)
    known = cache.files()
    if gone := known.keys() - wanted.keys():
        cache.forget(gone)
    stale = [path for path, found in wanted.items() if path not in known or known[path].stat != _text(found)]
    # Latest first: the next turn is probably about what was changed last.
    stale.sort(key=lambda path: -wanted[path].mtime_ns)
    reading = _MapReader(root, cache, known, guard, began)
    ready, next_published = len(wanted) - len(stale), FIRST_PUBLISHED
    for start in range(0, len(stale), BATCH):
        if time.monotonic() > deadline:
            break
        batch = stale[start : start + BATCH]
        reading.read({path: wanted[path] for path in batch})
        if reading.files >= next_published and start + BATCH < len(stale):
            next_published = 2 * reading.files
            _publish(cache, len(wanted), ready + reading.files)
    if gone or reading.changed or not known:
        _publish(cache, len(wanted), ready + reading.files)
        cache.tidy(20_000)  # contents that no file has now, such as those of other branches
    return BuildResult(len(wanted), reading.files, reading.parsed, reading.files == len(stale))


class _MapReader:
    def __init__(
        self, root: Path, cache: MapCache, known: Mapping[str, KnownFile], guard: Guard, began: int
    ) -> None:
        self.files = self.parsed = 0
        self.changed = False
        self._known = known
        self._root = root
        self._cache = cache
        self._began = began
        self._seen = cache.hashes()
        self._guard = guard

    def read(self, batch: dict[str, FileStat]) -> None:
        files, symbols = [], []
        for path, found in batch.items():
            language = language_of(path)
            data = _file_bytes(self._root, path)
            if language is None or data is None:
                continue
            digest = hashlib.sha256(f"{language.module} {language.grammar}\n".encode() + data).digest()[:16]
            if digest not in self._seen:
                self._seen.add(digest)
                self.parsed += 1
                with self._guard(digest):
                    symbols.append((digest, read_symbols(data, language).pack()))
            before = self._known.get(path)
            self.changed = self.changed or before is None or before.hash != digest
            # A file that was written this recently could change unseen, so it is read again.
            settled = max(found.mtime_ns, found.ctime_ns) < self._began - COARSE
            files.append((path, KnownFile(_text(found) if settled else "", digest)))
        self._cache.keep(files, symbols)
        self.files += len(batch)


def _publish(cache: MapCache, files: int, read: int) -> None:
    def sources() -> Iterator[SourceFile]:
        for path, data in cache.symbols():
            if language := language_of(path):
                yield SourceFile(path, language.module, Symbols.unpack(data))

    cache.publish(rank_files(sources), {"files": files, "read": read})


def _files_to_read(root: Path) -> dict[str, FileStat]:
    found = {path: told for path, told in snapshot(root).files.items() if _belongs(path, told)}
    if len(found) > MAX_FILES:
        latest = sorted(found, key=lambda path: -found[path].mtime_ns)[:MAX_FILES]
        found = {path: found[path] for path in latest}
    return found


def _belongs(path: str, told: FileStat) -> bool:
    """Whether the map may list the file: source code with a printable name that holds no secrets."""
    if language_of(path) is None or not stat.S_ISREG(told.mode) or told.size > MAX_FILE_BYTES:
        return False
    *folders, name = path.split("/")
    hidden = any(folder.lower() in SECRET_FOLDERS + STATE_FOLDERS for folder in folders)
    return path.isprintable() and not hidden and not is_secret_name(name)


def _text(told: FileStat) -> str:
    return " ".join(map(str, told))


def _file_bytes(root: Path, path: str) -> bytes | None:
    """The file's content; None if it is gone."""
    target = root / path
    try:
        with (
            open_folder(target.parent, root=root) as folder,
            open_file(target.name, folder=folder, follow=False) as file,
        ):
            return file.read(MAX_FILE_BYTES)
    except OSError:
        return None


FILE_CPU_SECONDS = 2.0
MEMORY = 1_000_000_000


def main() -> None:
    root, file = Path(sys.argv[1]), Path(sys.argv[2])
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    # Only an unhandled signal ends a library that hangs.
    signal.alarm(int(1.5 * BUILD_SECONDS))
    with suppress(CacheBroken, OSError):  # no room, or no folder any more: the next run tries again
        lock = lock_cache(file)
        if lock is not None:
            _build_locked(root, file, BuildMark(file))


def _build_locked(root: Path, file: Path, mark: BuildMark) -> None:
    @contextmanager
    def guard(digest: bytes) -> Iterator[None]:
        mark.set(digest)
        signal.setitimer(signal.ITIMER_PROF, FILE_CPU_SECONDS)
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        mark.clear()

    with closing(MapCache(file)) as cache:
        if mark.suspect.deaths >= 2:  # a single crash may be an accident
            cache.keep((), [(mark.suspect.digest, Symbols().pack())])
        build_map(root, cache, guard=guard)


if __name__ == "__main__":
    main()
