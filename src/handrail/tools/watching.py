"""Around a command: what it changed in the workspace becomes a change set of the session.

The comparison is made however the command ends: by itself, at its time limit, or cancelled.
"""

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from handrail.policy.scope import in_scope
from handrail.protocol.events import ChangePrepared
from handrail.protocol.ids import new_id
from handrail.sessions.handle import Session, recorded
from handrail.tools.base import Work
from handrail.workspace.files import Workspace

if TYPE_CHECKING:
    from handrail.changes.by_command import Before, Changed, Touched
    from handrail.changes.copies import Copies
    from handrail.workspace.git_index import Entry
    from handrail.workspace.index import FileStat, StatIndex

NAMED = 10
LETTERS = {"create": "A", "update": "M", "delete": "D"}
PREPARED = "change_prepared"
MOST_OUTPUT = 48_000_000
"""Bytes of what git is asked for, headers included."""


class Watch:
    """Looks at one workspace around its commands, and remembers what need not be read again."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._copies: Copies = {}
        self._index_stat: FileStat | None = None
        self._objects: Mapping[str, Entry] = {}

    @asynccontextmanager
    async def around(self, work: Work, command: str) -> AsyncIterator["Told"]:
        """Compare around the block; what is told is there when it has ended."""
        known = work.session.state.files
        names = [*reversed(known.changed), *reversed(known.files)]
        heads = other_heads(work.session)
        before = await run_sync(self._look_before, names)
        told = Told(before.looked, work.scope, work.session.state.intent)
        try:
            yield told
        finally:
            with anyio.CancelScope(shield=True):
                found, told.after = await self._compare(before)
                changed = _without_others(found, work.session, heads)
                record(work.session, work, command, changed)
                told.changed = changed

    def _look_before(self, known: Iterable[str]) -> "Before":
        from handrail.changes.by_command import Before
        from handrail.changes.copies import take_copies

        began = time.time_ns()
        index = snapshot_of(self.workspace.root)
        objects = self._git_index()

        def elsewhere(path: str, found: "FileStat") -> bool:
            entry = objects.get(path)
            return entry is not None and entry.is_of(found)

        names = list(dict.fromkeys(known))
        copies = take_copies(
            self.workspace.root, index, earlier=self._copies, known=names, elsewhere=elsewhere
        )
        self._copies = copies
        return Before(index, copies, objects, began)

    def _git_index(self) -> Mapping[str, "Entry"]:
        """What git has of the workspace, read again only when its index was written."""
        from handrail.workspace.git_index import LARGEST, Damaged, index_file, read_index
        from handrail.workspace.index import stat_of

        place = index_file(self.workspace.root)
        if place is None:
            return {}
        file, prefix = place
        try:
            found = stat_of(file.stat())
            if found == self._index_stat:
                return self._objects
            objects = read_index(file.read_bytes(), found.mtime_ns, prefix) if found.size <= LARGEST else {}
        except (OSError, Damaged):
            return {}
        self._index_stat, self._objects = found, objects
        return objects

    async def _compare(self, before: "Before") -> "tuple[Changed, StatIndex]":
        from handrail.changes.by_command import what_changed

        after, found = await run_sync(self._look_after, before)
        objects = await self._from_git(before, found.paths) if found.paths else {}
        return await run_sync(what_changed, self.workspace.root, before, after, found, objects), after

    def _look_after(self, before: "Before") -> "tuple[StatIndex, Touched]":
        from handrail.changes.by_command import touched

        after = snapshot_of(self.workspace.root, since=before.looked)
        return after, touched(self.workspace, before, after)

    async def _from_git(self, before: "Before", paths: Iterable[str]) -> dict[str, bytes]:
        """What tracked files held, where that is beyond doubt."""
        from handrail.changes.by_command import as_in_file, wanted_objects
        from handrail.tools.git import converted_files, git_contents

        root = self.workspace.root
        wanted = wanted_objects(before, paths)
        converted = await converted_files(root, list(wanted)) if wanted else set()
        if converted is None or wanted.keys() <= converted:
            return {}
        plain = {path: entry for path, entry in wanted.items() if path not in converted}
        stored = await git_contents(root, [entry.object_id for entry in plain.values()], MOST_OUTPUT)
        found = {
            path: as_in_file(stored[entry.object_id], before.looked.files[path].size)
            for path, entry in plain.items()
            if entry.object_id in stored
        }
        return {path: data for path, data in found.items() if data is not None}


class Told:
    """What is known of the workspace around a command; of its changes, when it has ended."""

    def __init__(
        self, before: "StatIndex", scope: tuple[str, ...] | None = None, intent_id: str = ""
    ) -> None:
        """`scope` is what the active intent owns."""
        self._scope = scope
        self._intent_id = intent_id
        self.before = before
        self.after = before
        self.changed: Changed | None = None

    @property
    def note(self) -> str:
        """One line for the model; empty where nothing changed."""
        if not self.changed or not self.changed.files:
            return ""
        files = self.changed.files
        names = ", ".join(f"{LETTERS[file.op]} {file.path}" for file in files[:NAMED])
        more = len(files) + self.changed.unlisted - NAMED
        rest = f", and {more:,} more" if more > 0 else ""
        ignored = f"; ignored files: {self.changed.ignored:,}" if self.changed.ignored else ""
        told = f"[changed while it ran: {names}{rest}{ignored}. Read them again before editing them.]"
        if outside := self._outside:
            shown = ", ".join(outside[:NAMED]) + f", and {len(outside) - NAMED:,} more" * (
                len(outside) > NAMED
            )
            told += f"\n[outside the scope of {self._intent_id}: {shown}. The user is told; put them back.]"
        return told

    @property
    def summary(self) -> str:
        """A few words for a person; empty where nothing changed."""
        count = len(self.changed.files) + self.changed.unlisted if self.changed else 0
        outside = f", {len(self._outside):,} outside the scope of {self._intent_id}" if self._outside else ""
        return f"{count:,} file{'s' * (count != 1)} changed{outside}" if count else ""

    @property
    def _outside(self) -> list[str]:
        if self._scope is None or not self.changed:
            return []
        return [file.path for file in self.changed.files if not in_scope(file.path, self._scope)]


def record(session: Session, work: Work, command: str, changed: "Changed") -> None:
    """The change set in the log, where there is one. It was applied when it was noticed."""
    from handrail.changes.trace.writing import record_applied

    if not changed.files:
        return
    turn = session.state.turn
    prepared = ChangePrepared(
        turn_id=work.turn_id,
        change_id=new_id("c"),
        call_id=work.call_id,
        files=changed.files,
        by="command",
        folders=changed.folders,
        intent=f"changed while this ran: {work.secrets.hide(command)}",
        intent_id=session.state.intent,
        model=turn.model if turn else "",
        request_id=turn.last_request if turn else "",
        unlisted=changed.unlisted,
    )
    record_applied(session, work.workspace, prepared, changed.contents)


def other_heads(session: Session) -> dict[str, int]:
    """How far the other sessions of the workspace have come."""
    heads = session.log.heads("session:")
    return {head.stream: head.seq for head in heads if head.stream != session.stream}


def _without_others(changed: "Changed", session: Session, heads: Mapping[str, int]) -> "Changed":
    """What changed, but for what other sessions have recorded as theirs since."""
    from handrail.changes.by_command import without_others
    from handrail.changes.journal import steps_of

    if not changed.files:
        return changed
    now = other_heads(session)
    # One event earlier: an intention that was being carried out when the command began.
    rows = [
        row
        for stream in now
        if now[stream] != heads.get(stream)
        for row in session.log.read(stream, after=max(0, heads.get(stream, 0) - 1))
    ]
    events = [recorded(row).event for row in sorted(rows, key=lambda row: row.at) if row.type == PREPARED]
    made = [event for event in events if isinstance(event, ChangePrepared) and event.by != "command"]
    steps = [step for prepared in made for step in steps_of(prepared)]
    return without_others(changed, steps)


def snapshot_of(root: Path, since: "StatIndex | None" = None) -> "StatIndex":
    """The files of the workspace as they look now."""
    from handrail.workspace.index import StatIndex, snapshot

    with suppress(OSError):  # a workspace that is not there any more has no files
        return snapshot(root, since=since)
    return StatIndex({}, {})
