"""Replay all changes to learn which change wrote each line; moved blocks keep their owner.

Unchanged and moved lines keep their owner; a change owns the lines it adds. Content that no change wrote has
no known owner. A run of lines counts as moved when it has enough letters and digits to rule out chance; a
shorter one only if everything that was removed from a file came back to it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from handrail.changes.change_set import sha256
from handrail.changes.trace.line_blocks import SameLines, align_lines, line_keys, runs_between
from handrail.changes.trace.logged_changes import AppliedChange
from handrail.protocol.values import ChangedRange, FileChange

MIN_WEIGHT = 20  # letters and digits of a moved block
MIN_WEIGHT_LATER = 40  # the same for a block that a later change brings back
HEAVY_LINE = 12  # letters and digits of a line that is distinctive: `return None` is not
MAX_TRIED = 40  # places that are compared for one line
NO_OWNER = -1
SIGNS = bytes(each for each in range(128) if not chr(each).isalnum())


class LineRun:
    """Consecutive lines that a change removed or added, with their owners as far as they are known."""

    def __init__(
        self, path: str, start: int, keys: Sequence[bytes], owners: Sequence[int] = (), *, to: str = ""
    ) -> None:
        self.path = path
        self.to = to or path  # the file's name after the change
        self.start = start
        self.keys = keys
        self.owners = list(owners) or [NO_OWNER] * len(keys)
        self.moved = [False] * len(keys)


class _Match(NamedTuple):
    run: LineRun  # of removed lines
    at: int
    back: int  # how many lines of the match come before the line that was looked up
    length: int


def assign_owners(removed: Sequence[LineRun], added: Sequence[LineRun], enough: int = MIN_WEIGHT) -> None:
    """Give added lines the owners of removed ones, where they are the same block."""
    if not removed or not added:
        return
    wanted = {key for run in added for key in run.keys}
    places: dict[bytes, list[tuple[LineRun, int]]] = {}
    for run in removed:
        for at, key in enumerate(run.keys):
            if key in wanted and line_weight(key) >= HEAVY_LINE:
                places.setdefault(key, []).append((run, at))
    for run in added:
        at = 0
        while at < len(run.keys):
            match = None if run.moved[at] else _longest(run, at, places, enough)
            if match:
                _mark_moved(run, at - match.back, match)
            at += match.length - match.back if match else 1
    for run in added:
        if not any(run.moved):
            for other in removed:
                if other.path == run.path and other.keys == run.keys and not any(other.moved):
                    _mark_moved(run, 0, _Match(other, 0, 0, len(run.keys)))
                    break


def line_weight(key: bytes) -> int:
    """How many letters and digits a line has."""
    return len(key.translate(None, SIGNS))


def _longest(
    run: LineRun, at: int, places: dict[bytes, list[tuple[LineRun, int]]], enough: int
) -> _Match | None:
    best: _Match | None = None
    free = [(other, place) for other, place in places.get(run.keys[at], ()) if not other.moved[place]]
    for other, place in free[:MAX_TRIED]:
        back = 0
        while _same(run, at - back - 1, other, place - back - 1):
            back += 1
        length = back
        while _same(run, at + length - back, other, place + length - back):
            length += 1
        if best is None or length > best.length:
            best = _Match(other, place - back, back, length)
    if best and sum(map(line_weight, best.run.keys[best.at : best.at + best.length])) >= enough:
        return best
    return None


def _same(run: LineRun, at: int, other: LineRun, place: int) -> bool:
    return (
        0 <= at < len(run.keys)
        and 0 <= place < len(other.keys)
        and run.keys[at] == other.keys[place]
        and not run.moved[at]
        and not other.moved[place]
    )


def _mark_moved(run: LineRun, start: int, match: _Match) -> None:
    for step in range(match.length):
        run.owners[start + step] = match.run.owners[match.at + step]
        run.moved[start + step] = match.run.moved[match.at + step] = True


class KnownLines(NamedTuple):
    """Hashes and distinctive lines of all files after the last change, and lines that were removed since."""

    hashes: set[str]
    known: set[bytes]
    lost: set[bytes]

    def explain(self, data: bytes) -> bool:
        """Whether a file may be a copy of known lines, or have some that were moved."""
        lines = heavy_lines(line_keys(data))
        copied = bool(lines) and len(lines & self.known) >= len(lines) * RENAME_SHARE
        return copied or not lines.isdisjoint(self.lost) or sha256(data) in self.hashes


def heavy_lines(keys: Iterable[bytes]) -> set[bytes]:
    return {key for key in keys if line_weight(key) >= HEAVY_LINE}


Contents = Callable[[str], bytes | None]
MAX_REMEMBERED = 5_000  # recently removed lines: a block may come back in a later change
RENAME_SHARE = 0.5  # a new file with this share of another one's lines counts as that one, renamed


class OwnedFile(NamedTuple):
    """A file with the owner of each line: the number of a change, or NO_OWNER."""

    sha256: str
    keys: list[bytes]
    owners: list[int]


NO_FILE = OwnedFile("", [], [])


class Tally(NamedTuple):
    """How many lines were written, rewritten and undone, by the number of the change that wrote them."""

    written: Counter[int]
    rewritten: Counter[int]
    taken_back: Counter[int]


class _NextVersion(NamedTuple):
    was: OwnedFile
    path: str
    to: str  # its path afterwards; empty where it is deleted
    sha256: str
    data: bytes | None  # None where there is none, or it is not stored
    ranges: tuple[ChangedRange, ...] | None = None  # what is new, where the content before is not known


class Replay:
    """The files of a workspace after each change, and finally as they are on disk."""

    def __init__(
        self,
        changes: Sequence[AppliedChange],
        contents: Contents,
        disk: Mapping[str, bytes | None],
        find_more: "Callable[[KnownLines], Mapping[str, bytes]] | None" = None,
    ) -> None:
        """`find_more` finds files outside of `disk` that somebody else may have made of the known lines."""
        self.files: dict[str, OwnedFile] = {}
        self.tally = Tally(Counter(), Counter(), Counter())
        self.unkept: set[int] = set()  # changes with a content that is not stored
        self._contents = contents
        self._removed: list[LineRun] = []
        self._kept: dict[tuple[str, str], OwnedFile] = {}  # versions that a file will have again
        now = {path: sha256(data) for path, data in disk.items()}
        self._wanted = _returning_hashes(changes) | set(now.values())
        for number, applied in enumerate(changes):
            others = [  # what somebody else did to these files since their last change
                self._found(file.path, sha, self._contents(sha) if sha else None)
                for file in applied.change.files
                if self.files.get(file.path, NO_FILE).sha256 != (sha := file.old_sha256)
            ]
            if others:
                self._step(NO_OWNER, others)
            files = [self._changed(number, file) for file in applied.change.files]
            self._step(number, files, undo=applied.change.by == "rollback")
        if find_more:
            more = find_more(self._known_lines(disk))
            disk, now = {**disk, **more}, now | {path: sha256(data) for path, data in more.items()}
        self._step(NO_OWNER, [self._found(path, now[path], data) for path, data in disk.items()])

    def _known_lines(self, disk: Mapping[str, bytes | None]) -> KnownLines:
        lost = {key for run in self._removed for key in run.keys}
        for path, data in disk.items():
            if path in self.files:
                lost.update(set(self.files[path].keys).difference(line_keys(data)))
        known = {key for owned in self.files.values() for key in owned.keys}
        hashes = {owned.sha256 for owned in self.files.values()}
        return KnownLines(hashes, heavy_lines(known), heavy_lines(lost))

    def _found(self, path: str, now: str, data: bytes | None) -> _NextVersion:
        """A file as somebody else left it; one with the content of another was renamed or copied."""
        was = self.files.get(path, NO_FILE)
        if not was.sha256 and now:
            was = self._most_similar(now, line_keys(data))
        return _NextVersion(was, path, path if now else "", now, data)

    def _most_similar(self, now: str, keys: Sequence[bytes]) -> OwnedFile:
        """The file with the same content, or else the one with most of its lines."""
        lines = heavy_lines(keys)
        best, most = NO_FILE, len(lines) * RENAME_SHARE
        for owned in self.files.values():
            if owned.sha256 == now:
                return owned
            if lines and (common := len(lines.intersection(owned.keys))) >= most:
                best, most = owned, common + 1
        return best

    def _changed(self, number: int, file: FileChange) -> _NextVersion:
        was = self.files.get(file.path, NO_FILE)
        data = self._contents(file.new_sha256) if file.new_sha256 else None
        to = (file.destination or file.path) if file.new_sha256 else ""
        unknown = was.sha256 != file.old_sha256
        if unknown or (to and data is None):
            self.unkept.add(number)
        return _NextVersion(was, file.path, to, file.new_sha256, data, file.ranges if unknown else None)

    def _step(self, number: int, files: Sequence[_NextVersion], *, undo: bool = False) -> None:
        removed: list[LineRun] = []
        added: list[LineRun] = []
        after: dict[str, OwnedFile] = {}
        for file in files:
            self.files.pop(file.path, None)
        for file in files:
            known = self._kept.get((file.to, file.sha256)) if undo or number == NO_OWNER else None
            if known:
                after[file.to] = known._replace(owners=list(known.owners))
                if undo:
                    lost = Counter(file.was.owners) - Counter(known.owners)
                    del lost[NO_OWNER]
                    self.tally.taken_back.update(lost)
            elif file.to and file.data is None:
                self._removed += _removed_runs(file.path, file.was, ())
            elif file.ranges is not None:
                after[file.to] = _by_ranges(number, file)
            else:
                owned = _compare(number, file, removed, added)
                if file.to:
                    after[file.to] = owned
        assign_owners(removed, added)
        assign_owners(self._removed, [run for run in added if not all(run.moved)], MIN_WEIGHT_LATER)
        for run in added:
            owners = after[run.to].owners
            for step, moved in enumerate(run.moved):
                if moved:
                    owners[run.start + step] = run.owners[step]
        if number != NO_OWNER:
            self._count(number, removed, added, undo=undo)
        self._removed = [run for run in (*self._removed, *removed) if not all(run.moved)]
        while len(self._removed) > 1 and sum(len(run.keys) for run in self._removed) > MAX_REMEMBERED:
            self._removed.pop(0)
        self.files |= after
        for path, owned in after.items():
            if owned.sha256 in self._wanted:
                self._kept[path, owned.sha256] = owned._replace(owners=list(owned.owners))

    def _count(
        self, number: int, removed: Iterable[LineRun], added: Iterable[LineRun], *, undo: bool
    ) -> None:
        self.tally.written[number] += sum(run.moved.count(False) for run in added)
        lost = self.tally.taken_back if undo else self.tally.rewritten
        for run in removed:
            pairs = zip(run.owners, run.moved, strict=True)
            lost.update(owner for owner, moved in pairs if not moved and owner not in (NO_OWNER, number))


def _compare(number: int, file: _NextVersion, removed: list[LineRun], added: list[LineRun]) -> OwnedFile:
    keys = line_keys(file.data)
    same = align_lines(file.was.keys, keys)
    removed += _removed_runs(file.path, file.was, same)
    owners = [number] * len(keys)
    for each in same:
        owners[each.after : each.after + each.length] = file.was.owners[each.before :][: each.length]
    for start, end in runs_between(((each.after, each.length) for each in same), len(keys)):
        added.append(LineRun(file.path, start, keys[start:end], to=file.to))
    return OwnedFile(file.sha256, keys, owners)


def _by_ranges(number: int, file: _NextVersion) -> OwnedFile:
    keys = line_keys(file.data)
    owners = [NO_OWNER] * len(keys)
    for each in file.ranges or ():
        owners[each.start - 1 : each.end] = [number] * (each.end - each.start + 1)
    return OwnedFile(file.sha256, keys, owners)


def _removed_runs(path: str, was: OwnedFile, same: Iterable[SameLines]) -> list[LineRun]:
    runs = runs_between(((each.before, each.length) for each in same), len(was.keys))
    return [LineRun(path, start, was.keys[start:end], was.owners[start:end]) for start, end in runs]


def _returning_hashes(changes: Iterable[AppliedChange]) -> set[str]:
    """Hashes of versions that a file gets again in another way than by the change that made them."""
    now: dict[str, str] = {}
    wanted: set[str] = set()
    for applied in changes:
        for file in applied.change.files:
            if now.get(file.path, "") != file.old_sha256:
                wanted.add(file.old_sha256)
            if applied.change.by == "rollback":
                wanted.add(file.new_sha256)
            now[file.path] = "" if file.destination else file.new_sha256
            if file.destination:
                now[file.destination] = file.new_sha256
    return wanted - {""}
