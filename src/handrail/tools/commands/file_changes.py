"""Find the workspace files that a command changed, and record them as a change set.

The files are compared however the command ends: by itself, at its time limit, or cancelled.
"""

import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.to_thread import run_sync

from handrail.changes import command_changes as changes
from handrail.changes.command_changes import CommandChanges, Copies, TouchedPaths, WorkspaceBefore
from handrail.changes.crash_recovery import COPIES_FOLDER, file_steps
from handrail.changes.saved_copies import InterruptedCommand, SavedCopies, interrupted_commands, journal_of
from handrail.changes.trace.write import record_applied
from handrail.config.open_file import open_file
from handrail.policy.intent_rules import in_scope
from handrail.policy.sandbox_mode import runs_elsewhere
from handrail.protocol.errors import HandrailError, LostHold
from handrail.protocol.events import ChangePrepared
from handrail.protocol.ids import new_id, session_stream
from handrail.sessions.session import Session, event_from_row
from handrail.storage.event_log import Log
from handrail.tools.git import converted_files, git_contents
from handrail.tools.safe_git import try_git
from handrail.tools.sandbox.protected_paths import SensitivePaths
from handrail.tools.tool import CallContext
from handrail.workspace.files import Workspace
from handrail.workspace.git_index import MAX_INDEX_BYTES, DamagedIndex, IndexEntry, find_index, read_index
from handrail.workspace.stat_index import FileStat, StatIndex, snapshot, stat_of
from handrail.workspace.watched_index import WatchedIndex

MAX_NAMED = 10
OP_LETTERS = {"create": "A", "update": "M", "delete": "D"}
MAX_OUTPUT = 48_000_000  # bytes of git's answer, headers included
MAX_REOPENED = 20  # folders closed inside each other
QUICK_SECONDS = 1.0  # a command that took longer is followed by a look at every file
ReadableSecrets = Callable[[StatIndex], Collection[str]]


class ChangeWatcher:
    """Compares a workspace before and after commands, and remembers what need not be read again."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._index = WatchedIndex(workspace.root)
        self._touched: frozenset[str] | None = None  # since the last command began; None: anything may be
        self._sensitive: SensitivePaths | None = None
        self._copies: Copies = {}
        self._index_stat: FileStat | None = None
        self._objects: Mapping[str, IndexEntry] = {}
        self._saved: SavedCopies | None = None
        self._base: BackgroundBase | None = None
        self._running = 0  # commands in the background that are watched
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def watch(
        self,
        work: CallContext,
        command: str,
        readable: ReadableSecrets | None = None,
        *,
        confined: bool = False,
    ) -> AsyncIterator["ObservedChanges"]:
        """Compare before and after the block; the result is complete when the block has ended.

        `confined`: bubblewrap confines all that runs in the block, and nothing runs on after it.
        With `readable` everything is recorded, as in mode `sandbox`: it says which files that look like
        secrets are treated like others.
        """
        async with self._lock if readable else nullcontext():
            await self._record_background()
            heads = other_session_heads(work.session)
            before = await self._take_before(work, command, readable, in_full=not confined)
            observed = ObservedChanges(before, work.scope, work.session.state.intent)
            observed.sensitive = None if readable else self._sensitive
            began = time.monotonic()
            try:
                yield observed
            finally:
                with anyio.CancelScope(shield=True):
                    quick = time.monotonic() - began < QUICK_SECONDS
                    found, observed.after = await self._compare(before, in_full=not (confined and quick))
                    observed.changed = _without_other_sessions(found, work.session, heads)
                    record_changes(work.session, work, command, observed.changed)
                    if self._saved and readable:
                        self._saved.forget()
                    if base := self._base:
                        await self._begin_background(base.work, base.command, base.readable)

    @asynccontextmanager
    async def watch_background(
        self, work: CallContext, command: str, readable: ReadableSecrets
    ) -> AsyncIterator[StatIndex]:
        """Record everything that changes while a command runs in the background; yields the index before it.

        It is recorded when another command begins, and when the last one in the background has ended.
        """
        async with self._lock:
            await self._record_background()
            base = await self._begin_background(work, command, readable)
            self._running += 1
        try:
            yield base
        finally:
            with anyio.CancelScope(shield=True):
                async with self._lock:
                    await self._record_background()
                    self._running -= 1
                    if self._running:
                        await self._begin_background(work, command, readable)
                    elif self._saved:
                        self._base = None
                        self._saved.forget()

    async def _take_before(
        self, work: CallContext, command: str, readable: ReadableSecrets | None, *, in_full: bool = True
    ) -> WorkspaceBefore:
        if readable is None:
            known = work.session.state.files
            names = [*reversed(known.changed), *reversed(known.files)]
            return await run_sync(partial(self._before, names, in_full=in_full))
        return await run_sync(self._before_everything, work, command, readable)

    def _before_everything(
        self, work: CallContext, command: str, readable: ReadableSecrets
    ) -> WorkspaceBefore:
        began, root = time.time_ns(), self.workspace.root
        index = workspace_snapshot(root, everything=True)
        names = readable(index)
        self._saved = self._saved or SavedCopies(work.session.log.folder / COPIES_FOLDER)
        view = self._saved.update(root, index, names, in_use=self._base is not None)
        ids = {"session_id": work.session.id, "turn_id": work.turn_id, "call_id": work.call_id}
        self._saved.note(journal_of(index, view, names, began, command=work.secrets.hide(command), **ids))
        return WorkspaceBefore(index, {}, self._git_index(), began, view, names)

    async def _begin_background(
        self, work: CallContext, command: str, readable: ReadableSecrets
    ) -> StatIndex:
        heads = other_session_heads(work.session) | {work.session.stream: work.session.seq}
        before = await self._take_before(work, command, readable)
        self._base = BackgroundBase(before, heads, work, command, readable)
        return before.snapshot

    async def _record_background(self) -> None:
        """Record what commands in the background have changed since the last time."""
        if base := self._base:
            found, _ = await self._compare(base.before)
            session = base.work.session
            changed = _without_other_sessions(found, session, base.heads, own=True)
            with suppress(LostHold):
                record_changes(session, base.work, f"in the background: {base.command}", changed)

    def close(self) -> None:
        """Remove the copies."""
        self._index.close()
        if self._saved:
            self._saved.close()
            self._saved = None

    def _before(self, known: Iterable[str], *, in_full: bool) -> WorkspaceBefore:
        began, old_objects = time.time_ns(), self._objects
        objects = self._git_index()
        index = self._look(in_full=in_full, expected=len(objects))
        touched, self._touched = self._touched, frozenset()
        if self._sensitive:
            self._sensitive.update(index, touched)
        else:
            self._sensitive = SensitivePaths(index)

        def in_git(path: str, found: FileStat) -> bool:
            entry = objects.get(path)
            return entry is not None and entry.is_of(found)

        names = list(dict.fromkeys(known))
        root, earlier = self.workspace.root, self._copies
        self._copies = changes.take_copies(
            root,
            index,
            earlier=earlier,
            known=names,
            elsewhere=in_git,
            touched=touched if objects is old_objects or not (objects or old_objects) else None,
        )
        return WorkspaceBefore(index, self._copies, objects, began)

    def _look(self, since: StatIndex | None = None, *, in_full: bool, expected: int = 0) -> StatIndex:
        with suppress(OSError):  # a workspace that is gone has no files
            index = self._index.look(since, in_full=in_full, expected=expected)
            earlier, now = self._touched, index.touched
            self._touched = None if earlier is None or now is None else earlier | now
            return index
        self._touched = None
        return StatIndex({}, {})

    def _git_index(self) -> Mapping[str, IndexEntry]:
        """The files in git's index, read again only if the index has changed."""
        place = find_index(self.workspace.root)
        if place is None:
            return {}
        file, prefix = place
        try:
            with open_file(file) as opened:
                found = stat_of(opened.found)
                if found == self._index_stat:
                    return self._objects
                data = b"".join(opened.chunks(MAX_INDEX_BYTES))
            objects = read_index(data, found.mtime_ns, prefix)
        except (OSError, DamagedIndex):
            return {}
        self._index_stat, self._objects = found, objects
        return objects

    async def _compare(
        self, before: WorkspaceBefore, *, in_full: bool = True
    ) -> tuple[CommandChanges, StatIndex]:
        after, found = await run_sync(partial(self._after, before, in_full=in_full))
        if isinstance(found, CommandChanges):
            return found, after
        stored = await self._from_git(before, found.paths)
        return await run_sync(changes.compare_after, self.workspace.root, before, after, found, stored), after

    def _after(
        self,
        before: WorkspaceBefore,
        *,
        in_full: bool,
    ) -> tuple[StatIndex, TouchedPaths | CommandChanges]:
        """The workspace now, and its changes, unless something of git has to be read for them."""
        root = self.workspace.root
        if before.saved is None:
            after = self._look(before.snapshot, in_full=in_full)
        else:
            after = after_command(root, before)
        found = changes.find_touched(self.workspace, before, after)
        if changes.git_objects_needed(before, found.paths):
            return after, found
        return after, changes.compare_after(root, before, after, found, {})

    async def _from_git(self, before: WorkspaceBefore, paths: Iterable[str]) -> dict[str, bytes]:
        """The earlier content of tracked files, if git certainly has it."""
        wanted = changes.git_objects_needed(before, paths)
        git = await try_git(self.workspace.root) if wanted else None
        converted = await converted_files(git, list(wanted)) if git else None
        if git is None or converted is None or wanted.keys() <= converted:
            return {}
        plain = {path: entry for path, entry in wanted.items() if path not in converted}
        stored = await git_contents(git, [entry.object_id for entry in plain.values()], MAX_OUTPUT)
        found = {
            path: changes.working_tree_bytes(stored[entry.object_id], before.snapshot.files[path].size)
            for path, entry in plain.items()
            if entry.object_id in stored
        }
        return {path: data for path, data in found.items() if data is not None}


class BackgroundBase(NamedTuple):
    """The state from which the changes of commands in the background are still to be recorded."""

    before: WorkspaceBefore
    heads: Mapping[str, int]
    work: CallContext
    command: str
    readable: ReadableSecrets


def after_command(root: Path, before: WorkspaceBefore) -> StatIndex:
    """The workspace now; if everything is recorded, also what the command has closed to its owner."""
    everything = before.saved is not None
    after = workspace_snapshot(root, since=before.snapshot, everything=everything)
    for _ in range(MAX_REOPENED if everything else 0):
        if not changes.reopen(root, after):
            break
        after = workspace_snapshot(root, since=before.snapshot, everything=everything)
    return after


class ObservedChanges:
    """The workspace before and after a command, and its changes once it has ended."""

    def __init__(
        self, before: WorkspaceBefore, scope: tuple[str, ...] | None = None, intent_id: str = ""
    ) -> None:
        """`scope` is the active intent's scope."""
        self._scope = scope
        self._intent_id = intent_id
        self._everything = before.saved is not None
        self.before = before.snapshot
        self.after = before.snapshot
        self.readable = before.readable
        self.sensitive: SensitivePaths | None = None
        self.changed: CommandChanges | None = None

    @property
    def note(self) -> str:
        """The changed files, for the model; empty if nothing changed."""
        if not self.changed:
            return ""
        files = [file for file in self.changed.files if not file.ignored]
        names = ", ".join(f"{OP_LETTERS[file.op]} {file.path}" for file in files[:MAX_NAMED])
        more = len(files) + self.changed.unlisted - MAX_NAMED
        rest = f", and {more:,} more" if more > 0 else ""
        aside = self.changed.ignored + len(self.changed.files) - len(files)
        ignored = f"; ignored files: {aside:,}" if aside else ""
        note = f"[changed while it ran: {names}{rest}{ignored}. Read them again before editing them.]"
        note = note if names else ""
        if outside := self._outside:
            more = len(outside) - MAX_NAMED
            shown = ", ".join(outside[:MAX_NAMED]) + (f", and {more:,} more" if more > 0 else "")
            note += f"\n[outside the scope of {self._intent_id}: {shown}. The user was told; restore them.]"
        return note

    @property
    def summary(self) -> str:
        """A few words for the user; empty if nothing changed."""
        if not self.changed:
            return ""
        files = [file for file in self.changed.files if not file.ignored]
        count = len(files) + self.changed.unlisted
        outside = f", {len(self._outside):,} outside the scope of {self._intent_id}" if self._outside else ""
        said = f"{outside}{self._lost}{self._autorun}"
        return f"{count:,} file{'s' * (count != 1)} changed{said}" if count or said else ""

    @property
    def _autorun(self) -> str:
        """In mode sandbox, where nobody saw the command: files that may run something outside of it."""
        if not self._everything or not self.changed:
            return ""
        found = [
            file.path for file in self.changed.files if file.op != "delete" and runs_elsewhere(file.path)
        ]
        more = f" and {len(found) - MAX_NAMED:,} more" if len(found) > MAX_NAMED else ""
        named = ", ".join(found[:MAX_NAMED])
        return f", LOOK AT {named}{more}: other programs may run what is in it" if found else ""

    @property
    def _lost(self) -> str:
        """In mode sandbox, where users count on it: what undo cannot give back."""
        if not self._everything or not self.changed:
            return ""
        lost = [file.path for file in self.changed.files if not file.restorable]
        more = self.changed.unlisted + max(0, len(lost) - MAX_NAMED)
        names = ", ".join(lost[:MAX_NAMED]) + (f" and {more:,} more" if more else "")
        return f", UNDO CANNOT GIVE BACK {names.strip()}" if lost or more else ""

    @property
    def _outside(self) -> list[str]:
        if self._scope is None or not self.changed:
            return []
        return [file.path for file in self.changed.files if not in_scope(file.path, self._scope)]


def record_changes(session: Session, work: CallContext, command: str, changed: CommandChanges) -> None:
    """Record the changes, if any, as a change set that is already applied."""
    if not changed.files and not changed.folder_modes:
        return
    turn = session.state.turn
    prepared = ChangePrepared(
        turn_id=work.turn_id,
        change_id=new_id("c"),
        call_id=work.call_id,
        files=changed.files,
        by="command",
        folders=changed.folders,
        folder_modes=changed.folder_modes,
        intent=f"changed while this ran: {work.secrets.hide(command)}",
        intent_id=session.state.intent,
        model=turn.model if turn else "",
        request_id=turn.last_request if turn else "",
        unlisted=changed.unlisted,
    )
    record_applied(session, work.workspace, prepared, changed.contents)


def other_session_heads(session: Session) -> dict[str, int]:
    """The last event number of each other session of the workspace."""
    heads = session.log.heads("session:")
    return {head.stream: head.seq for head in heads if head.stream != session.stream}


def _without_other_sessions(
    changed: CommandChanges, session: Session, heads: Mapping[str, int], *, own: bool = False
) -> CommandChanges:
    """The changes without those that other sessions, and `own` edits, have recorded meanwhile."""
    if not changed.files:
        return changed
    now = other_session_heads(session) | ({session.stream: session.seq} if own else {})
    # From one event earlier: a change that was being applied when the command began.
    grown = [stream for stream in now if now[stream] != heads.get(stream)]
    reads = [session.log.read(stream, after=max(0, heads.get(stream, 0) - 1)) for stream in grown]
    rows = [row for read in reads for row in read if row.type == "change_prepared"]
    events = [event_from_row(row).event for row in sorted(rows, key=lambda row: row.at)]
    made = [event for event in events if isinstance(event, ChangePrepared) and event.by != "command"]
    return changes.without_other_sessions(changed, [step for each in made for step in file_steps(each)])


def record_interrupted(log: Log, workspace: Workspace, held: Session | None = None) -> None:
    """Record what commands changed that were running when their Handrail was killed, each in its session.

    A session that another process holds is left to that process; `held` is one that this process holds.
    """
    with interrupted_commands(log.folder / COPIES_FOLDER) as commands:
        for each in commands:
            session_id = each.journal.session_id
            if log.head(session_stream(session_id)) is None:
                continue
            ours = held if held and held.id == session_id else None
            session = ours or Session(log, session_id).load()
            if not ours and not session.try_hold():
                each.pack.keep = True
                continue
            try:
                _record_interrupted(session, workspace, each)
            except (OSError, HandrailError):
                each.pack.keep = True
            finally:
                if not ours:
                    session.release()


def _record_interrupted(session: Session, workspace: Workspace, command: InterruptedCommand) -> None:
    journal = command.journal
    readable = tuple(map(os.fsdecode, journal.readable))
    before = WorkspaceBefore(journal.index, {}, {}, journal.began_ns, command.saved, readable)
    after = after_command(workspace.root, before)
    touched = changes.find_touched(workspace, before, after)
    changed = changes.compare_after(workspace.root, before, after, touched, {})
    work = CallContext(session, workspace, journal.turn_id, journal.call_id, ExitStack())
    record_changes(session, work, f"{journal.command} (Handrail was killed)", changed)


def workspace_snapshot(root: Path, since: StatIndex | None = None, *, everything: bool = False) -> StatIndex:
    """The workspace's files as they are now."""
    with suppress(OSError):  # a workspace that is gone has no files
        return snapshot(root, since=since, everything=everything)
    return StatIndex({}, {})
