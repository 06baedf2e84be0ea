"""Undo change sets with one net edit per file; merge, never overwrite, what others wrote.

A plan walks each file back from its present content through the change sets, newest first. If the file is not
what a set left, somebody else changed it: a three-way merge removes what the set did, for the user to accept.
"""

import os
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.changes.change_set import ChangeSet, FileEdit, Origin, sha256
from handrail.changes.crash_recovery import file_steps
from handrail.changes.diff import Diff, diff
from handrail.changes.merge import Clash, merge
from handrail.protocol.errors import PathProblem, Undecided
from handrail.protocol.events import ChangePrepared
from handrail.protocol.values import FileConflict, FolderMode, Value
from handrail.storage.event_log import Log
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.file_step import (
    LINK_MARK,
    NOT_REGULAR,
    PIPE_CONTENT,
    UNREAD,
    FileContent,
    FileState,
    FileStep,
)
from handrail.workspace.files import Workspace, decode_lossy
from handrail.workspace.paths import path_text, printable, text_path
from handrail.workspace.sensitive_names import is_protected_name
from handrail.workspace.writer import Writer

MAX_CLASHES = 5
PlanKind = Literal["restore", "merge", "conflict", "lost"]


class FilePlan(Value):
    exact: str
    """Its path, even if that is not UTF-8."""
    kind: PlanKind
    """The user must accept a merge; a file with a conflict, or of lost content, can only stay as it is."""
    now: FileContent
    then: bytes | None = None
    mode: int | None = None
    why: str = ""
    clashes: tuple[Clash, ...] = ()
    ignored: bool = False
    in_the_way: str = ""
    """A file or folder where this file, or a folder of it, has to be; the same plan removes it."""

    @property
    def path(self) -> str:
        return printable(self.exact)

    @property
    def diff(self) -> Diff:
        return diff(self.path, _readable(self.now.data), _readable(self.then))

    @property
    def conflict(self) -> FileConflict:
        kind = "conflict" if self.kind == "restore" else self.kind
        shown = self.diff.text if kind == "merge" else ""
        return FileConflict(path=self.path, kind=kind, why=printable(self.why), diff=shown)


class Plan(Value):
    takes_back: tuple[str, ...]
    files: tuple[FilePlan, ...]
    """Those that would change, or cannot."""
    emptied: tuple[str, ...] = ()
    folder_modes: tuple[FolderMode, ...] = ()
    """Folders to make, to remove and to give other permissions, outermost first."""
    paths: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """{change set: paths it changed}"""
    intents: Mapping[str, str] = field(default_factory=dict)
    """{change set: its intent}"""

    @property
    def conflicts(self) -> tuple[FileConflict, ...]:
        return tuple(file.conflict for file in self.files if file.kind != "restore")

    @property
    def first(self) -> tuple[FilePlan, ...]:
        """What has to be removed, in a change set of its own, before other files fit in its place."""
        if not any(file.in_the_way for file in self.files):
            return ()
        return tuple(file for file in self.files if file.kind == "restore" and file.then is None)


def plan_undo(log: Log, workspace: Workspace, changes: Sequence[ChangePrepared], disk: Disk = DISK) -> Plan:
    """The plan to undo these applied change sets, oldest first."""
    writer = Writer(workspace.root, disk)
    history: dict[str, list[PastStep]] = {}
    for change in reversed(changes):
        files = [file for file in change.files for _ in range(1 + (file.op == "move"))]
        for step, file in zip(file_steps(change), files, strict=True):
            history.setdefault(step.path, []).append(PastStep(step, file.restorable, file.ignored))
    planned = [_plan(path, steps, writer, workspace, log.blob) for path, steps in history.items()]
    plans = [plan for plan in planned if plan]
    folders = _past_folders(changes)
    emptied = tuple(path for path, past in folders.items() if past.then is None)
    gone = {plan.exact for plan in plans if plan.kind == "restore" and plan.then is None}
    return Plan(
        tuple(change.change_id for change in changes),
        tuple(_with_place(plan, writer, gone, emptied) for plan in plans),
        emptied,
        _folder_modes(folders, writer, gone, emptied),
        {change.change_id: frozenset(step.path for step in file_steps(change)) for change in changes},
        {change.change_id: change.intent_id for change in changes},
    )


def _with_place(plan: FilePlan, writer: Writer, gone: Collection[str], emptied: Collection[str]) -> FilePlan:
    """The plan with what is in its file's way, or a conflict if that is not removed by other plans."""
    if plan.kind != "restore" or plan.then is None or plan.now.found.sha256:
        return plan
    if writer.folder_mode(plan.exact) is not None:
        if _becomes_empty(writer.root / plan.exact, plan.exact, gone, emptied):
            return replace(plan, in_the_way=plan.exact)
        why = f"{plan.path} is a folder now, with files that are not from here."
        return replace(plan, kind="conflict", why=why)
    blocking = writer.in_the_way(plan.exact)
    if not blocking:
        return plan
    if blocking in gone:
        return replace(plan, in_the_way=blocking)
    why = (
        f"{blocking} is no longer a folder. Leave {plan.path} as it is, undo the rest, then undo {plan.path}."
    )
    return replace(plan, kind="conflict", why=why)


def _becomes_empty(folder: Path, path: str, gone: Collection[str], emptied: Collection[str]) -> bool:
    """Whether nothing is left in a folder, and it goes, once the `gone` files are."""
    if path not in emptied:
        return False
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return False
    return all(
        _becomes_empty(folder / each.name, f"{path}/{each.name}", gone, emptied)
        if each.is_dir(follow_symlinks=False)
        else f"{path}/{each.name}" in gone
        for each in entries
    )


class PastFolder(NamedTuple):
    """A folder's permissions before and after some change sets; None where there was none."""

    then: int | None
    last: int | None
    recorded: bool
    """It is among the `folder_modes` of one of them, so it is worth a change set of its own."""


def _past_folders(changes: Sequence[ChangePrepared]) -> dict[str, PastFolder]:
    """What the change sets did to folders, innermost first."""
    found: dict[str, PastFolder] = {}
    for change in reversed(changes):
        made = [(FolderMode(path, None, None), False) for path in change.folders]
        for each, recorded in (*((each, True) for each in change.folder_modes), *made):
            path = text_path(each.path)
            later = found.get(path, PastFolder(None, each.new, recorded))
            found[path] = PastFolder(each.old, later.last, later.recorded or recorded)
    return dict(sorted(found.items(), reverse=True))


def _folder_modes(
    folders: Mapping[str, PastFolder], writer: Writer, gone: Collection[str], emptied: Collection[str]
) -> tuple[FolderMode, ...]:
    """What has to happen to the folders, as far as nobody else has changed them, outermost first."""
    modes = []
    for path, (then, last, recorded) in sorted(folders.items()):
        now = writer.folder_mode(path)
        if then is None:
            changes = now is not None and _becomes_empty(writer.root / path, path, gone, emptied)
        else:
            changes = now is None or now == last != then
        if changes and recorded:
            modes.append(FolderMode(path_text(path), now, then))
    return tuple(modes)


def undo_change_set(
    plan: Plan,
    *,
    accept: Collection[str] = (),
    leave: Collection[str] = (),
    turn_id: str = "",
    call_id: str = "",
    request_id: str = "",
) -> ChangeSet | None:
    """The change set that carries out a plan, with the merges of `accept` and without the files of `leave`.

    None where nothing has to change; raises Undecided where the user must decide first. If the plan has
    something to do `first`, this is only that: apply it, and plan again.
    """
    files = [file for file in plan.files if file.path not in leave]
    undecided = [
        file
        for file in files
        if file.kind != "restore" and not (file.kind == "merge" and file.path in accept)
    ]
    if undecided:
        names = ", ".join(file.path for file in undecided)
        raise Undecided(
            f"Nothing was undone: somebody else changed {names} since, or its content is no longer stored."
            " Accept the merge of a file, or leave it as it is.",
            tuple(file.conflict for file in undecided),
        )
    folder_modes = plan.folder_modes
    origin = Origin(turn_id, call_id, by="rollback", request_id=request_id)
    if first := [file for file in plan.first if file.path not in leave]:
        # The rest follows in a second change set, which is the one that counts as the undo.
        removed = tuple(each for each in folder_modes if each.new is None)
        edits = tuple(_edit(file) for file in first)
        return ChangeSet(edits, origin, hard_links_agreed=True, folder_modes=removed)
    if not files and not folder_modes:
        return None
    # A change set all of whose files are left as they are was not undone.
    undone = tuple(
        each
        for each in plan.takes_back
        if not plan.paths[each] or not set(map(printable, plan.paths[each])) <= set(leave)
    )
    intents = {plan.intents[each] for each in undone}
    intent_id = intents.pop() if len(intents) == 1 else ""
    origin = replace(origin, intent_id=intent_id, takes_back=undone)
    edits = tuple(_edit(file) for file in files)
    return ChangeSet(edits, origin, hard_links_agreed=True, folder_modes=folder_modes)


class PastStep(NamedTuple):
    step: FileStep
    restorable: bool
    ignored: bool


class FileWalk(Struct):
    sha256: str
    mode: int | None
    data: bytes | None = None
    """The content if it is not a stored one: what is there now, or what was merged."""
    merged: bool = False


class CannotUndo(Exception):
    def __init__(self, kind: PlanKind, why: str, clashes: tuple[Clash, ...] = ()) -> None:
        super().__init__(why)
        self.kind: PlanKind = kind
        self.why = why
        self.clashes = clashes


def _plan(
    path: str,
    steps: Sequence[PastStep],
    writer: Writer,
    workspace: Workspace,
    blob: Callable[[str], bytes | None],
) -> FilePlan | None:
    try:
        folder = workspace.resolve(os.path.dirname(path))
    except PathProblem as problem:  # links in a circle now
        return FilePlan(path, "conflict", FileContent(), why=str(problem))
    if any(
        (folder.absolute / os.path.basename(path)).is_relative_to(each) for each in workspace.program_paths
    ):
        why = f"{path} is part of the Handrail that is running. Undo it with another one, or by hand."
        return FilePlan(path, "conflict", FileContent(), why=why)
    outside = path.startswith("/") or ".." in path.split("/")
    ours = is_protected_name(path.split("/", maxsplit=1)[0]) or any(
        folder.absolute.is_relative_to(each) for each in workspace.state_folders
    )
    if outside or folder.in_git or ours:
        return FilePlan(path, "conflict", FileContent(), why=f"{path} now points somewhere else.")
    now = FileContent() if writer.folder_mode(path) is not None else writer.read(path)
    if (unsaved := workspace.unsaved.get(path)) is not None:
        now = FileContent(now.found._replace(sha256=sha256(unsaved)), unsaved)
    walk = FileWalk(now.found.sha256, now.found.mode, now.data)
    try:
        for past in steps:
            _walk_back(walk, past, blob)
        if walk.sha256 == now.found.sha256 and walk.mode == now.found.mode:
            return None
        then = _content(walk, blob)
    except CannotUndo as stopped:
        return FilePlan(path, stopped.kind, now, why=stopped.why, clashes=stopped.clashes)
    if walk.merged:
        why = (
            f"Somebody else changed {path} since; the change can be removed by a merge that keeps their work."
        )
        return FilePlan(path, "merge", now, then, walk.mode, why)
    return FilePlan(path, "restore", now, then, walk.mode, ignored=steps[0].ignored)


def _walk_back(walk: FileWalk, past: PastStep, blob: Callable[[str], bytes | None]) -> None:
    step = past.step
    if not past.restorable and not step.old:
        raise CannotUndo("lost", f"{step.path} was made then, and what is in it now is not recorded.")
    if not past.restorable:
        raise CannotUndo("lost", f"The earlier content of {step.path} was not stored.")
    state = step.state(FileState(walk.sha256, walk.mode))
    if state == "old":
        return  # somebody else has already undone it
    if state == "third":
        _merge_out(walk, step, blob)
        return
    # Permissions that somebody else set since stay, also if the set did not change them.
    other_kind = stat.S_IFMT(step.old_mode or 0) != stat.S_IFMT(step.new_mode or 0)
    if not step.old or walk.mode is None or walk.mode == step.new_mode or other_kind:
        walk.mode = step.old_mode
    walk.sha256, walk.data = step.old, None


def _merge_out(walk: FileWalk, step: FileStep, blob: Callable[[str], bytes | None]) -> None:
    """Remove what a change set did from what somebody else made of it."""
    path = step.path
    if walk.sha256 == NOT_REGULAR:
        raise CannotUndo("conflict", f"{path} is no longer a file that can be compared.")
    if not step.old:
        raise CannotUndo("conflict", f"{path} was created here and changed by somebody else since.")
    if not step.new:
        raise CannotUndo("conflict", f"{path} was deleted here, and somebody else has made another one.")
    if not walk.sha256:
        raise CannotUndo("conflict", f"{path} was deleted by somebody else since.")
    base, theirs = blob(step.new), blob(step.old)
    if base is None or theirs is None:
        raise CannotUndo("lost", f"The earlier content of {path} is no longer stored.")
    found = merge(base, _content(walk, blob) or b"", theirs)
    if found is None:
        raise CannotUndo("conflict", f"Somebody else changed {path} since, and it cannot be merged by lines.")
    if found.clashes:
        lines = ", ".join(str(clash.line) for clash in found.clashes[:MAX_CLASHES])
        why = f"Somebody else changed the same lines of {path} since (line {lines})."
        raise CannotUndo("conflict", why, found.clashes)
    walk.sha256, walk.data, walk.merged = sha256(found.data), found.data, True


def _content(walk: FileWalk, blob: Callable[[str], bytes | None]) -> bytes | None:
    if not walk.sha256 or walk.data is not None:
        return walk.data
    data = blob(walk.sha256)
    if data is None:
        raise CannotUndo("lost", "The earlier content of the file is no longer stored.")
    return data


def _edit(file: FilePlan) -> FileEdit:
    found = file.now.found.sha256
    return FileEdit(
        file.exact,
        "create" if not found else "delete" if file.then is None else "update",
        file.now.data,
        file.then,
        file.diff,
        mode=file.mode,
        ignored=file.ignored,
        old_unread=found if found.startswith(UNREAD) else "",
    )


def _readable(data: bytes | None) -> str | None:
    if data is not None and data.startswith(LINK_MARK):
        return f"link to {decode_lossy(data.removeprefix(LINK_MARK))}\n"
    if data == PIPE_CONTENT:
        return "a named pipe\n"
    return decode_lossy(data) if data is not None else None
