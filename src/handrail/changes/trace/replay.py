"""Who wrote each line: all change sets once more, in their order, from the contents that the log keeps.

Lines that stay keep their owner, lines that move take him along, what a change brings is its own. What a file
was when a change found it, and no change had made, somebody else has written: nobody that is known here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from handrail.changes.change_set import sha256
from handrail.changes.trace.aligning import Same, same_lines
from handrail.changes.trace.blocks import keys_of
from handrail.changes.trace.known import Applied
from handrail.changes.trace.moving import HEAVY, MUCH, NOBODY, Run, settle, weight
from handrail.protocol.values import ChangedRange, FileChange

Contents = Callable[[str], bytes | None]
REMEMBERED = 5_000
"""Lines that went lately: a block may come back in a later change."""

ALIKE = 0.5
"""Share of its lines by which a file that is new is taken for another one, renamed and edited."""


class Owned(NamedTuple):
    """A file with the owner of each line: the number of a change, or nobody."""

    sha256: str
    keys: list[bytes]
    owners: list[int]


NO_FILE = Owned("", [], [])


class Tally(NamedTuple):
    """What became of lines, by the number of the change that wrote them."""

    written: Counter[int]
    rewritten: Counter[int]
    """By a later change."""
    taken_back: Counter[int]


class _Becomes(NamedTuple):
    """What one file is to be."""

    was: Owned
    path: str
    to: str
    """Where it is afterwards; empty where it is gone."""
    sha256: str
    data: bytes | None
    """None where there is none, and where it is not kept."""
    ranges: tuple[ChangedRange, ...] | None = None
    """What is new, where the content before is not known."""


class Replay:
    """The files of a workspace as changes made them, and at last as they are on the disk."""

    def __init__(
        self, changes: Sequence[Applied], contents: Contents, disk: Mapping[str, bytes | None]
    ) -> None:
        self.files: dict[str, Owned] = {}
        self.tally = Tally(Counter(), Counter(), Counter())
        self.unkept: set[int] = set()
        """Numbers of changes of which a content is not kept: only the hashes of blocks tell more of them."""
        self._contents = contents
        self._lost: list[Run] = []
        self._kept: dict[tuple[str, str], Owned] = {}
        """Versions that somebody comes back to."""
        now = {path: sha256(data) for path, data in disk.items()}
        self._wanted = _come_back_to(changes) | set(now.values())
        for number, applied in enumerate(changes):
            self._catch_up(applied.change.files)
            files = [self._becomes(number, file) for file in applied.change.files]
            self._step(number, files, back=applied.change.by == "rollback")
        self._step(NOBODY, [self._found(path, now[path], data) for path, data in disk.items()])

    def _catch_up(self, files: Iterable[FileChange]) -> None:
        """What somebody else did to these files since the last change of theirs."""
        others = [
            self._found(
                file.path,
                file.old_sha256,
                self._contents(file.old_sha256) if file.old_sha256 else None,
            )
            for file in files
            if self._owned(file.path).sha256 != file.old_sha256
        ]
        if others:
            self._step(NOBODY, others)

    def _owned(self, path: str) -> Owned:
        return self.files.get(path, NO_FILE)

    def _found(self, path: str, now: str, data: bytes | None) -> _Becomes:
        """A file as somebody else left it; one that has the content of another was renamed, or copied."""
        was = self._owned(path)
        if not was.sha256 and now:
            was = self._twin(now, keys_of(data))
        return _Becomes(was, path, path if now else "", now, data)

    def _twin(self, now: str, keys: Sequence[bytes]) -> Owned:
        """The file that has the same content, or else the one that has most of its lines."""
        lines = {key for key in keys if weight(key) >= HEAVY}
        best, most = NO_FILE, len(lines) * ALIKE
        for owned in self.files.values():
            if owned.sha256 == now:
                return owned
            if lines and (common := len(lines.intersection(owned.keys))) >= most:
                best, most = owned, common + 1
        return best

    def _becomes(self, number: int, file: FileChange) -> _Becomes:
        was = self._owned(file.path)
        data = self._contents(file.new_sha256) if file.new_sha256 else None
        to = (file.destination or file.path) if file.new_sha256 else ""
        unknown = was.sha256 != file.old_sha256
        if unknown or (to and data is None):
            self.unkept.add(number)
        return _Becomes(was, file.path, to, file.new_sha256, data, file.ranges if unknown else None)

    def _step(self, number: int, files: Sequence[_Becomes], *, back: bool = False) -> None:
        gone: list[Run] = []
        come: list[Run] = []
        after: dict[str, Owned] = {}
        for file in files:
            self.files.pop(file.path, None)
        for file in files:
            known = self._kept.get((file.to, file.sha256)) if back or number == NOBODY else None
            if known:
                after[file.to] = known._replace(owners=list(known.owners))
                self._count_back(file.was, known, back=back)
            elif file.to and file.data is None:
                self._lost += _gone(file.path, file.was, ())
            elif file.ranges is not None:
                after[file.to] = _by_ranges(number, file)
            else:
                self._compare(number, file, after, gone, come)
        settle(gone, come)
        settle(self._lost, [run for run in come if not all(run.taken)], MUCH)
        _give(after, come)
        self._count(number, gone, come, back=back)
        self._remember(gone)
        self.files |= after
        for path, owned in after.items():
            if owned.sha256 in self._wanted:
                self._kept[path, owned.sha256] = owned._replace(owners=list(owned.owners))

    def _compare(
        self, number: int, file: _Becomes, after: dict[str, Owned], gone: list[Run], come: list[Run]
    ) -> None:
        keys = keys_of(file.data)
        same = same_lines(file.was.keys, keys)
        gone += _gone(file.path, file.was, same)
        if file.to:
            owners = [number] * len(keys)
            for each in same:
                stayed = file.was.owners[each.before : each.before + each.length]
                owners[each.after : each.after + each.length] = stayed
            after[file.to] = Owned(file.sha256, keys, owners)
            come += _come(file.path, file.to, keys, same)

    def _count(self, number: int, gone: Iterable[Run], come: Iterable[Run], *, back: bool) -> None:
        if number != NOBODY:
            self.tally.written[number] += sum(run.taken.count(False) for run in come)
            lost = self.tally.taken_back if back else self.tally.rewritten
            for run in gone:
                pairs = zip(run.owners, run.taken, strict=True)
                lost.update(owner for owner, taken in pairs if not taken and owner not in (NOBODY, number))

    def _count_back(self, was: Owned, now: Owned, *, back: bool) -> None:
        if back:
            lost = Counter(was.owners) - Counter(now.owners)
            self.tally.taken_back.update({owner: times for owner, times in lost.items() if owner != NOBODY})

    def _remember(self, gone: Iterable[Run]) -> None:
        self._lost = [run for run in (*self._lost, *gone) if not all(run.taken)]
        while len(self._lost) > 1 and sum(len(run.keys) for run in self._lost) > REMEMBERED:
            self._lost.pop(0)


def _by_ranges(number: int, file: _Becomes) -> Owned:
    keys = keys_of(file.data)
    owners = [NOBODY] * len(keys)
    for each in file.ranges or ():
        owners[each.start - 1 : each.end] = [number] * (each.end - each.start + 1)
    return Owned(file.sha256, keys, owners)


def _give(after: Mapping[str, Owned], come: Iterable[Run]) -> None:
    for run in come:
        owners = after[run.to].owners
        for step, taken in enumerate(run.taken):
            if taken:
                owners[run.start + step] = run.owners[step]


def _gone(path: str, was: Owned, same: Sequence[Same]) -> list[Run]:
    runs, at = [], 0
    for each in (*same, Same(len(was.keys), 0, 0)):
        if each.before > at:
            runs.append(Run(path, at, was.keys[at : each.before], was.owners[at : each.before]))
        at = each.before + each.length
    return runs


def _come(path: str, to: str, keys: Sequence[bytes], same: Sequence[Same]) -> list[Run]:
    runs, at = [], 0
    for each in (*same, Same(0, len(keys), 0)):
        if each.after > at:
            runs.append(Run(path, at, keys[at : each.after], to=to))
        at = each.after + each.length
    return runs


def _come_back_to(changes: Iterable[Applied]) -> set[str]:
    """Hashes of versions that a file had before and gets again otherwise than by the change that made it."""
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
