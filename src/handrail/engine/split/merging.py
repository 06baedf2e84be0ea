"""Merge the results of subtasks by their base hashes; overlaps become conflicts with both sides."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from handrail.changes.merge import Clash, merge
from handrail.protocol.errors import StorageProblem
from handrail.protocol.events import ConflictSettled, SubtaskDone
from handrail.protocol.subtask import SplitConflict
from handrail.workspace.files import decode_lossy

Blob = Callable[[str], bytes | None]
Settled = Mapping[str, ConflictSettled]
CONFLICT_DIGITS = 10


class MergedFiles(NamedTuple):
    files: dict[str, bytes | None]
    """Every file that a subtask changed, as all of them leave it; None: deleted."""
    conflicts: tuple[SplitConflict, ...]


class _File(Struct):
    data: bytes | None
    by: list[str]
    """The subtasks whose changes are in it."""


class _Sides(NamedTuple):
    line: int
    base: bytes
    ours: bytes | None
    theirs: bytes | None


class _Merger:
    def __init__(self, blob: Blob, settled: Settled) -> None:
        self._blob = blob
        self._settled = settled
        self.files: dict[str, _File] = {}
        self.conflicts: list[SplitConflict] = []
        self._ids = Counter[str]()

    def stored(self, sha256: str) -> bytes | None:
        """The content by its hash; None for no file."""
        if not sha256:
            return None
        data = self._blob(sha256)
        if data is None:
            raise StorageProblem(
                f"A content of this split ({sha256[:12]}) is not stored any more. Start a new one."
            )
        return data

    def add(self, name: str, path: str, base: bytes | None, theirs: bytes | None) -> None:
        held = self.files[path]
        ours = held.data
        if ours == theirs:
            held.by.append(name)
        elif ours == base:
            held.data = theirs
            held.by.append(name)
        elif theirs != base:
            held.data = self._both(name, path, base, held, theirs)
            held.by.append(name)

    def _both(
        self, name: str, path: str, base: bytes | None, held: _File, theirs: bytes | None
    ) -> bytes | None:
        ours = held.data
        if ours is not None and theirs is not None:
            found = merge(
                base or b"", ours, theirs, settle=lambda clash: self._lines(name, path, held, clash)
            )
            if found is not None:
                return found.data
        # One side deletes the file, or it cannot be compared by lines.
        conflict = self._conflict(name, path, held.by, _Sides(1, base or b"", ours, theirs))
        if settled := self._settled.get(conflict.id):
            return settled.text.encode() if settled.text is not None else None
        self.conflicts.append(conflict)
        return ours

    def _lines(self, name: str, path: str, held: _File, clash: Clash) -> bytes | None:
        conflict = self._conflict(name, path, held.by, _Sides(*clash))
        settled = self._settled.get(conflict.id)
        if settled and settled.text is not None:
            return settled.text.encode()
        self.conflicts.append(conflict)
        return None

    def _conflict(self, name: str, path: str, by: list[str], sides: _Sides) -> SplitConflict:
        """The conflict; its id stays the same when everything is merged again."""
        digest = hashlib.sha256(f"{path}\0{name}\0".encode())
        line, base, ours, theirs = sides
        for side in (base, ours, theirs):
            digest.update(b"-" if side is None else b"+%d " % len(side) + side)
        plain = digest.hexdigest()[:CONFLICT_DIGITS]
        self._ids[plain] += 1
        return SplitConflict(
            id=plain if self._ids[plain] == 1 else f"{plain}-{self._ids[plain]}",
            path=path,
            line=line,
            base=decode_lossy(base),
            ours=decode_lossy(ours) if ours is not None else None,
            theirs=decode_lossy(theirs) if theirs is not None else None,
            ours_by=tuple(by),
            theirs_by=name,
        )


def merge_results(
    now: Mapping[str, bytes | None], results: Iterable[SubtaskDone], blob: Blob, settled: Settled
) -> MergedFiles:
    """What all results together make of the files, in their order.

    `now` are the files as they are: what changed in them since the start is merged too.
    """
    merger = _Merger(blob, settled)
    for result in results:
        for file in result.files:
            if file.path not in merger.files:
                merger.files[file.path] = _File(now.get(file.path), [])
            merger.add(result.subtask_id, file.path, merger.stored(file.base), merger.stored(file.sha256))
    return MergedFiles({path: each.data for path, each in merger.files.items()}, tuple(merger.conflicts))
