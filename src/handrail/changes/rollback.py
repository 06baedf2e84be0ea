"""Taking change sets back: one net change a file, and never over what somebody else has written since.

A plan walks each file from what it is now back through the change sets, newest first. Where it is not what a
set made of it, somebody else changed it: then what the set did is merged out of it, for the user to accept.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from handrail.changes.change_set import ChangeSet, FileEdit, Origin, sha256
from handrail.changes.diff import Diff, diff
from handrail.changes.journal import steps_of
from handrail.changes.merge import Clash, merge
from handrail.protocol.errors import PathProblem, Undecided
from handrail.protocol.events import ChangePrepared
from handrail.protocol.values import FileConflict
from handrail.storage.log import Log
from handrail.workspace.disk import DISK, Disk
from handrail.workspace.files import Workspace
from handrail.workspace.found import OTHER, Content, Found, Step
from handrail.workspace.text import readable
from handrail.workspace.writer import Writer

SHOWN_CLASHES = 5
Kind = Literal["restore", "merge", "conflict", "lost"]


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What becomes of one file."""

    path: str
    kind: Kind
    """A merge needs the user's word; a conflict, or what is not kept any more, can only be left as it is."""
    now: Content
    then: bytes | None = None
    mode: int | None = None
    why: str = ""
    clashes: tuple[Clash, ...] = ()

    @property
    def diff(self) -> Diff:
        return diff(self.path, _readable(self.now.data), _readable(self.then))

    @property
    def conflict(self) -> FileConflict:
        kind = "conflict" if self.kind == "restore" else self.kind
        shown = self.diff.text if kind == "merge" else ""
        return FileConflict(path=self.path, kind=kind, why=self.why, diff=shown)


@dataclass(frozen=True, slots=True)
class Plan:
    """What taking back some change sets means now. Nothing has happened yet."""

    takes_back: tuple[str, ...]
    files: tuple[FilePlan, ...]
    """Those that would change, or cannot."""
    emptied: tuple[str, ...] = ()
    paths: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """{change set: what it touched}"""
    intents: Mapping[str, str] = field(default_factory=dict)
    """{change set: the intent that it belongs to}"""

    @property
    def conflicts(self) -> tuple[FileConflict, ...]:
        return tuple(file.conflict for file in self.files if file.kind != "restore")


def plan_back(log: Log, workspace: Workspace, changes: Sequence[ChangePrepared], disk: Disk = DISK) -> Plan:
    """What taking back these applied change sets, given oldest first, comes to."""
    writer = Writer(workspace.root, disk)
    ways: dict[str, list[Past]] = {}
    for change in reversed(changes):
        kept = {path: file.restorable for file in change.files for path in (file.path, file.destination)}
        for step in steps_of(change):
            ways.setdefault(step.path, []).append(Past(step, kept[step.path]))
    plans = [_plan(path, way, writer, workspace, log.blob) for path, way in ways.items()]
    folders = [folder for change in reversed(changes) for folder in reversed(change.folders)]
    return Plan(
        tuple(change.change_id for change in changes),
        tuple(plan for plan in plans if plan),
        tuple(dict.fromkeys(folders)),
        {change.change_id: frozenset(step.path for step in steps_of(change)) for change in changes},
        {change.change_id: change.intent_id for change in changes},
    )


def back(
    plan: Plan,
    *,
    accept: Collection[str] = (),
    leave: Collection[str] = (),
    turn_id: str = "",
    call_id: str = "",
) -> ChangeSet | None:
    """The change set that carries a plan out, with the merges of `accept` and without the files of `leave`.

    None where no file has to change; raises Undecided where the user has yet to say something.
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
            f"Nothing was taken back: somebody else changed {names} since, or it is not kept any more."
            " Accept the merge of a file, or leave it as it is.",
            tuple(file.conflict for file in undecided),
        )
    if not files:
        return None
    # What is left as it is, with all of its files, was not taken back.
    taken = tuple(each for each in plan.takes_back if not plan.paths[each] <= set(leave))
    intents = {plan.intents[each] for each in taken}
    origin = Origin(
        turn_id=turn_id,
        call_id=call_id,
        by="rollback",
        intent_id=intents.pop() if len(intents) == 1 else "",
        takes_back=taken,
    )
    return ChangeSet(tuple(_edit(file) for file in files), origin, hard_links_agreed=True)


class Past(NamedTuple):
    """What one change set did to one path."""

    step: Step
    restorable: bool


@dataclass(slots=True)
class Walk:
    """Where a file is on its way back."""

    sha256: str
    mode: int | None
    data: bytes | None = None
    """Where it is no stored content: what is there now, or what was merged."""
    merged: list[str] = field(default_factory=list)


class Stopped(Exception):
    """The way back ends here."""

    def __init__(self, kind: Kind, why: str, clashes: tuple[Clash, ...] = ()) -> None:
        super().__init__(why)
        self.kind: Kind = kind
        self.why = why
        self.clashes = clashes


def _plan(
    path: str,
    way: Sequence[Past],
    writer: Writer,
    workspace: Workspace,
    blob: Callable[[str], bytes | None],
) -> FilePlan | None:
    try:
        place = workspace.resolve(path)
    except PathProblem as problem:  # links in a circle now
        return FilePlan(path, "conflict", Content(), why=str(problem))
    if not place.inside or place.in_git or place.in_state or place.absolute != workspace.root / path:
        return FilePlan(path, "conflict", Content(), why=f"{path} leads somewhere else now.")
    if not way[-1].step.old and place.absolute.is_dir():
        return None  # there was no file, and there is none
    now = writer.read(path)
    walk = Walk(now.found.sha256, now.found.mode, now.data)
    try:
        for past in way:
            _walk_back(walk, past, blob)
        if walk.sha256 == now.found.sha256 and walk.mode == now.found.mode:
            return None
        then = _content(walk, blob)
        if blocking := writer.in_the_way(path):
            why = f"{blocking} is no folder any more. Leave {path} as it is, take the rest back, then {path}."
            raise Stopped("conflict", why)
    except Stopped as stopped:
        return FilePlan(path, stopped.kind, now, why=stopped.why, clashes=stopped.clashes)
    if walk.merged:
        why = f"Somebody else changed {path} since; the change can be taken out of what they made of it."
        return FilePlan(path, "merge", now, then, walk.mode, why)
    return FilePlan(path, "restore", now, then, walk.mode)


def _walk_back(walk: Walk, past: Past, blob: Callable[[str], bytes | None]) -> None:
    step = past.step
    if not past.restorable:
        raise Stopped("lost", f"What {step.path} was before is not kept.")
    state = step.state(Found(walk.sha256, walk.mode))
    if state == "old":
        return  # somebody else has taken it back already
    if state == "third":
        _merge_out(walk, step, blob)
        return
    # Permissions that somebody else set since stay; a set that did not change them has no say in them.
    if not step.old or walk.mode is None or walk.mode == step.new_mode:
        walk.mode = step.old_mode
    walk.sha256, walk.data = step.old, None


def _merge_out(walk: Walk, step: Step, blob: Callable[[str], bytes | None]) -> None:
    """Take what a change set did out of what somebody else made of it."""
    if walk.sha256 == OTHER:
        raise Stopped("conflict", f"{step.path} is no file that can be compared any more.")
    if not step.old:
        raise Stopped("conflict", f"{step.path} was created here and changed by somebody else since.")
    if not step.new:
        raise Stopped("conflict", f"{step.path} was deleted here, and somebody else has made another one.")
    if not walk.sha256:
        raise Stopped("conflict", f"{step.path} was deleted by somebody else since.")
    base, theirs = blob(step.new), blob(step.old)
    if base is None or theirs is None:
        raise Stopped("lost", f"What {step.path} was before is not kept any more.")
    found = merge(base, _content(walk, blob) or b"", theirs)
    if found is None:
        raise Stopped(
            "conflict", f"Somebody else changed {step.path} since, and it cannot be merged by lines."
        )
    if found.clashes:
        lines = ", ".join(str(clash.line) for clash in found.clashes[:SHOWN_CLASHES])
        why = f"Somebody else changed the same lines of {step.path} since (line {lines})."
        raise Stopped("conflict", why, found.clashes)
    walk.sha256, walk.data = sha256(found.data), found.data
    walk.merged.append(step.mark)


def _content(walk: Walk, blob: Callable[[str], bytes | None]) -> bytes | None:
    if not walk.sha256 or walk.data is not None:
        return walk.data
    data = blob(walk.sha256)
    if data is None:
        raise Stopped("lost", "What the file was before is not kept any more.")
    return data


def _edit(file: FilePlan) -> FileEdit:
    op: Literal["create", "update", "delete"] = "update"
    if file.now.data is None:
        op = "create"
    elif file.then is None:
        op = "delete"
    return FileEdit(file.path, op, file.now.data, file.then, file.diff, mode=file.mode)


def _readable(data: bytes | None) -> str | None:
    return readable(data) if data is not None else None
