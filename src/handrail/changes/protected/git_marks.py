"""What git records of its own work: HEAD, refs, the index, objects, a rebase.

The user may commit while a command runs, so a change is reported and never undone.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from handrail.changes.protected.scan import read_start
from handrail.storage.protected_copies import Stamp
from handrail.workspace.git_index import MAX_INDEX_BYTES, DamagedIndex, read_index
from handrail.workspace.sensitive_names import GIT

MAX_REFS = 50_000
HEAD_BYTES = 4_096
ANY_TIME = 1 << 63
OWN_PLACES = ("logs/HEAD", "rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "CHERRY_PICK_HEAD")


class GitMarks(NamedTuple):
    head: bytes = b""
    refs: Mapping[str, Stamp] = {}
    packs: frozenset[str] = frozenset()
    places: Mapping[str, Stamp] = {}
    index_stamp: Stamp = ()
    index_data: bytes = b""


def git_marks(root: Path) -> GitMarks:
    """The marks of the workspace's repository; empty if it has none of its own."""
    folder = root / GIT
    if folder.is_symlink() or not folder.is_dir():
        return GitMarks()
    head = index_data = b""
    with suppress(OSError):
        head = read_start(root, f"{GIT}/HEAD", HEAD_BYTES)
    index = _stamp(folder / "index")
    with suppress(OSError):
        index_data = read_start(root, f"{GIT}/index", MAX_INDEX_BYTES) if index else b""
    packs = frozenset[str]()
    with suppress(OSError):
        packs = frozenset(name for name in os.listdir(folder / "objects" / "pack") if name.endswith(".pack"))
    places = {name: _stamp(folder / name) for name in OWN_PLACES}
    with suppress(OSError), os.scandir(folder / "objects") as entries:
        places |= {f"objects/{entry.name}": _stamp(Path(entry.path)) for entry in entries}
    return GitMarks(head, dict(_refs(folder)), packs, places, index, index_data)


def changed_marks(before: GitMarks, after: GitMarks) -> list[str]:
    """What differs, in words."""
    if not before.refs:
        return []
    changed = {
        f"{GIT}/HEAD": before.head != after.head,
        f"{GIT}/refs": before.refs != after.refs,
        f"{GIT}/index": before.index_stamp != after.index_stamp and _entries(before) != _entries(after),
        f"{GIT}/objects/pack (packs are gone)": not before.packs <= after.packs,
    }
    known = before.places.keys() | after.places.keys()
    places = {name.partition("/")[0] for name in known if before.places.get(name) != after.places.get(name)}
    return [
        *(name for name, differs in changed.items() if differs),
        *(f"{GIT}/{name}" for name in sorted(places)),
    ]


def _refs(folder: Path) -> Iterator[tuple[str, Stamp]]:
    yield "packed-refs", _stamp(folder / "packed-refs")
    waiting, left = [str(folder / "refs")], MAX_REFS
    while waiting and left > 0:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    found = entry.stat(follow_symlinks=False)
                    yield entry.path, (found.st_ctime_ns, found.st_size, found.st_ino)


def _stamp(path: Path) -> Stamp:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _entries(marks: GitMarks) -> Mapping[str, str]:
    """The objects in the index: git also writes it to refresh the times in it."""
    try:
        found = read_index(marks.index_data, ANY_TIME)
    except DamagedIndex:
        return {"": hashlib.sha256(marks.index_data).hexdigest()}
    return {path: entry.object_id for path, entry in found.items()}
