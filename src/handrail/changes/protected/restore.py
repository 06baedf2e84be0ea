"""Save the protected files before a command; compare and restore them while it runs and when it has ended.

Where the sandbox keeps commands from writing them, changes are reported and left: somebody else made them.
Nothing is lost by restoring: what was in the place of a file is moved to a quarantine folder first.
"""

import hashlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from msgspec.structs import replace

from handrail.changes.protected.git_marks import changed_marks, git_marks
from handrail.changes.protected.restorer import MAX_FILE_BYTES, TRACE, Change, Restorer, read_up_to
from handrail.changes.protected.scan import entry_of, group_of, is_unsaved, open_regular, scan
from handrail.storage.protected_copies import (
    ANY_MODE,
    ChangeReport,
    Manifest,
    ProtectedCopies,
    RunningCommand,
    SavedEntry,
)
from handrail.workspace.intents_file import IGNORE_FILES, INTENTS_FILE
from handrail.workspace.paths import open_folder
from handrail.workspace.sensitive_names import GIT, STATE_FILES, STATE_FOLDERS

MAX_BYTES = 64_000_000  # of the copies of a group
BEAT_SECONDS = 2.0
GRACE_SECONDS = 10.0
"""What changed later than this after the last sign of life of a killed Handrail is not its command's work."""


class GuardedCommand:
    """The protected files while a command runs; `finish` compares them and returns what changed."""

    def __init__(
        self,
        state: Path,
        root: Path,
        *,
        repositories: tuple[str, ...] = (),
        links: tuple[str, ...] = (),
        restores: bool,
        writes_git: bool = False,
    ) -> None:
        """`state` is the folder of the workspace's log; raises OSError or StorageBusy.

        `restores`: what the command changes is restored, else only reported. `writes_git`: it may change what
        git records of its own work.
        """
        self._copies, self._root = ProtectedCopies(state), root
        self._marks = None if writes_git else git_marks(root)
        copies = self._copies
        with copies.locked():
            running = copies.running()
            self._position = copies.reports_end()
            checked = _check(copies, root, running) if running else _Checked(copies.manifest())
            if not any(each.alive for each in running):
                _save(copies, root, checked, repositories, links)
                for each in running:
                    copies.unmark(each.marker)
            self._marker, self._lock = copies.mark(restores=restores)
        _heartbeat.add(self._marker)

    def finish(self) -> ChangeReport:
        """What changed since the start, once what can be restored has been."""
        _heartbeat.remove(self._marker)
        copies = self._copies
        try:
            with copies.locked():
                _check(copies, self._root, copies.running())
                report = copies.reports_since(self._position)
                if not report.failed:
                    copies.unmark(self._marker)  # else the next command tries again
        finally:
            self._lock.release()
        changed = changed_marks(self._marks, git_marks(self._root)) if self._marks else []
        return report + ChangeReport(left=tuple(changed))


class _Heartbeat:
    """A thread that shows that the commands of this process are alive; it ends when there are none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._markers: set[Path] = set()
        self._beats = False

    def add(self, marker: Path) -> None:
        with self._lock:
            self._markers.add(marker)
            begins, self._beats = not self._beats, True
        if begins:
            threading.Thread(target=self._beat, daemon=True).start()

    def remove(self, marker: Path) -> None:
        with self._lock:
            self._markers.discard(marker)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            with self._lock:
                markers = tuple(self._markers)
                self._beats = bool(markers)
            if not markers:
                return
            for marker in markers:
                with suppress(OSError):  # its command has just ended
                    os.utime(marker)


_heartbeat = _Heartbeat()


def restore_now(state: Path, root: Path) -> Mapping[str, bytes | None] | None:
    """Restore the files while commands run; returns the files of intents as they have to be.

    None while no command runs that could change them. Raises OSError or StorageProblem.
    """
    copies = ProtectedCopies(state)
    if not copies.in_use:
        return None
    with copies.locked():
        running = copies.running()
        if not any(each.restores for each in running):
            return None
        manifest = _check(copies, root, running).manifest
        intents = (INTENTS_FILE, *IGNORE_FILES)
        return {path: copies.content(manifest.files[path]) for path in intents if path in manifest.files}


def restore_after_crash(state: Path, root: Path) -> ChangeReport:
    """Restore what the commands of a killed Handrail changed."""
    copies = ProtectedCopies(state)
    if not copies.in_use:
        return ChangeReport()
    with copies.locked():
        running = copies.running()
        if all(each.alive for each in running):
            return ChangeReport()
        position = copies.reports_end()
        _check(copies, root, running)
        report = copies.reports_since(position)
        for each in running:
            if not each.alive and not report.failed:
                copies.unmark(each.marker)
        return report


def _save(
    copies: ProtectedCopies,
    root: Path,
    checked: "_Checked",
    repositories: tuple[str, ...],
    links: tuple[str, ...],
) -> None:
    """Make the files as they are now those to be restored; only what changed is read."""
    before, found = checked.manifest, scan(root, repositories, links)
    left: defaultdict[str, int] = defaultdict(lambda: MAX_BYTES)
    files: dict[str, SavedEntry] = {}
    for path, entry in found.entries.items():
        known = before.files.get(path)
        if path in checked.failed:
            continue
        if (
            known
            and entry.kind != "folder"
            and entry.stamp
            and known == replace(entry, content=known.content)
        ):
            files[path] = known
        else:
            files[path] = _with_content(copies, root, path, entry, left[group_of(path)])
        left[group_of(path)] -= entry.size if entry.kind == "file" else 0
    files |= {path: before.files[path] for path in checked.failed if path in before.files}
    now = Manifest(files, repositories, links, tuple(found.unsaved))
    if now != before:
        copies.store(now)
        copies.tidy(now)


def _with_content(copies: ProtectedCopies, root: Path, path: str, entry: SavedEntry, room: int) -> SavedEntry:
    if entry.kind == "link":
        with suppress(OSError), open_folder((root / path).parent, root=root) as folder:
            return replace(entry, content=os.fsencode(os.readlink(PurePosixPath(path).name, dir_fd=folder)))
    if entry.kind == "file" and entry.size <= min(MAX_FILE_BYTES, room):
        with suppress(OSError), open_regular(root, path) as descriptor:
            found = entry_of(os.fstat(descriptor))
            data = read_up_to(descriptor, MAX_FILE_BYTES + 1)
            if len(data) <= MAX_FILE_BYTES:
                return replace(found, size=len(data), content=copies.keep(data))
    return entry


class _Checked(NamedTuple):
    manifest: Manifest
    failed: tuple[str, ...] = ()


def _check(copies: ProtectedCopies, root: Path, running: Iterable[RunningCommand]) -> _Checked:
    """Compare and restore, and record what was found; returns the manifest as it is afterwards."""
    manifest, running = copies.manifest(), list(running)
    restores = any(each.restores for each in running)
    # If nothing runs any more, what changed later than the last sign of life was somebody else's work.
    alive = any(each.alive for each in running)
    until = None if alive else max(each.beat for each in running) + GRACE_SECONDS
    restorer = Restorer(copies, root, until)
    if restores:
        restorer.return_repositories(manifest)
    found = scan(root, manifest.repositories, manifest.links, manifest.files)
    while restores and restorer.open_folders(manifest, found):
        found = scan(root, manifest.repositories, manifest.links, manifest.files)
    files = dict(manifest.files)
    for path in sorted(files.keys() | found.entries.keys()):
        change = Change(path, files.get(path), restorer.entry(path, found))
        verdict = _compare(copies, root, change, manifest)
        if isinstance(verdict, SavedEntry):
            files[path] = verdict
        elif verdict == "same" or (change.saved is None and path == GIT):
            continue  # a new repository is named with the other files that the command made
        elif not restores and _is_mount_point(root, change):
            continue  # of a bubblewrap that outlived a killed Handrail for a moment, or of another session
        elif not ((restores or path in manifest.links) and restorer.restore(change)):
            restorer.left.append(path)
            if change.found:
                files[path] = _with_content(copies, root, path, change.found, MAX_FILE_BYTES)
            else:
                del files[path]
    overfull = [f"{path} (too many files to compare)" for path in manifest.unsaved]
    copies.add_report(restorer.report(overfull))
    after = replace(manifest, files=files)
    if after != manifest:
        copies.store(after)
    return _Checked(after, tuple(restorer.failed))


def _is_mount_point(root: Path, change: Change) -> bool:
    """Whether this is an empty file or folder, as bubblewrap makes to mount something on it."""
    path, saved, found = change
    if saved is not None or found is None:
        return False
    if path in STATE_FILES:
        return found.kind == "file" and not found.size
    if path in STATE_FOLDERS and found.kind == "folder":
        with suppress(OSError), os.scandir(root / path) as entries:
            return next(entries, None) is None
    return False


def _compare(copies: ProtectedCopies, root: Path, change: Change, manifest: Manifest) -> SavedEntry | str:
    """`same`, `changed`, or the entry to be saved from now on because it is the same with a new stamp."""
    path, saved, found = change
    if saved is None:
        return "same" if found is None or is_unsaved(path, manifest) else "changed"
    if found is None or found.kind != saved.kind:
        return "changed"
    same_mode = saved.mode in (ANY_MODE, found.mode)
    if found.kind in ("folder", "other"):
        return "same" if same_mode else "changed"
    if found.stamp and found.stamp == saved.stamp:
        return "same"
    if found.kind == "file" and not saved.content:  # it was too large to be copied
        return found if path == TRACE and found.size >= saved.size and same_mode else "changed"
    if path == TRACE and same_mode and _has_grown(root, path, saved):
        return _with_content(copies, root, path, found, MAX_FILE_BYTES)
    now = _content_of(root, path, found, saved.size)
    return replace(found, content=saved.content) if same_mode and now == saved.content else "changed"


def _content_of(root: Path, path: str, found: SavedEntry, size: int) -> bytes:
    """The hash of a file, or a link's target; empty if it is another one for certain."""
    with suppress(OSError):
        if found.kind == "link":
            with open_folder((root / path).parent, root=root) as folder:
                return os.fsencode(os.readlink(PurePosixPath(path).name, dir_fd=folder))
        with open_regular(root, path) as descriptor:
            if os.fstat(descriptor).st_size == size:
                return hashlib.sha256(read_up_to(descriptor, size + 1)).hexdigest().encode()
    return b""


def _has_grown(root: Path, path: str, saved: SavedEntry) -> bool:
    """Whether lines were only added to the trace, as other sessions do."""
    with suppress(OSError), open_regular(root, path) as descriptor:
        data = read_up_to(descriptor, saved.size)
        return hashlib.sha256(data).hexdigest().encode() == saved.content
    return False
