"""Questions about changes: what an undo, redo or rewind would do; types of history, trace and storage.

A rewind is previewed here, confirmed by the user, and then sent to the session as a command.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from handrail.changes.forms.document import Document, read_document
from handrail.changes.trace.blame import BlamedLine
from handrail.changes.trace.report import Count, Report
from handrail.changes.trace.trace_file import ExportFormat
from handrail.changes.undo import FilePlan
from handrail.engine.admin.history import NetChange, RewindPlan, ShownChange, ShownFile
from handrail.engine.admin.trace import TraceCheck
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ChangePrepared, Rewound
from handrail.sessions.change_history import PastChange
from handrail.sessions.storage_use import SpareContents
from handrail.workspace.files import decode_lossy

if TYPE_CHECKING:
    from handrail.app.app import App

__all__ = [
    "BlamedLine",
    "Count",
    "Document",
    "ExportFormat",
    "FilePlan",
    "NetChange",
    "PastChange",
    "Report",
    "read_document",
]
__all__ += ["ShownChange", "ShownFile", "SpareContents", "TraceCheck"]

PARTS = "fcb"
"""The keys that choose what goes back: files, conversation, or both."""


class RewindPreview(NamedTuple):
    """What a rewind, undo or redo would do; nothing is done yet."""

    session_id: str
    command: Rewind | Redo
    """With the id of the change set in full."""
    going: RewindPlan
    changes: list[PastChange]
    turns: int
    restores_conversation: bool
    """A redo that brings back turns which a rewind set aside."""
    waits: bool
    """A turn waits for the user's answer: nothing can be undone before it has ended."""
    running: bool

    @property
    def files(self) -> tuple[FilePlan, ...]:
        return self.going.plan.files

    def of_kind(self, *kinds: str) -> list[FilePlan]:
        return [file for file in self.files if file.kind in kinds]

    def undecided(self, command: Rewind | Redo) -> list[FilePlan]:
        """Files about which the user has to decide first."""
        return [
            file
            for file in self.of_kind("merge", "conflict", "lost")
            if file.path not in command.leave and not (file.kind == "merge" and file.path in command.accept)
        ]

    @property
    def ways(self) -> str:
        """The letters of `PARTS` that would do something."""
        files, conversation = bool(self.of_kind("restore", "merge")), bool(self.conversation)
        return "fcb" if files and conversation else "f" * files + "c" * conversation

    @property
    def conversation(self) -> int:
        """How many turns a rewind of the conversation sets aside."""
        event = self.going.event
        return self.turns - event.turns if isinstance(event, Rewound) and event.keep is not None else 0

    @property
    def undone(self) -> list[int]:
        """Numbers of the change sets that would be undone, the newest first."""
        ids = set(self.going.plan.takes_back)
        return [change.number for change in reversed(self.changes) if change.id in ids and in_place(change)]

    @property
    def not_undone(self) -> str:
        return with_change_numbers(self.going.event.detail, self.changes)

    def check_paths(self, accept: Collection[str], leave: Collection[str]) -> None:
        """Raise UsageProblem for a path that this would not change, or that has no merge to accept."""
        known = {file.path: file for file in self.files}
        for path in [*accept, *leave]:
            if path not in known:
                raise UsageProblem(
                    f"{path} is not among the files that this would change. --dry-run lists them."
                )
        for path in accept:
            file = known[path]
            if file.kind in ("conflict", "lost"):
                raise UsageProblem(
                    f"There is no merge of {path}: {file.why} Only --leave {path} is possible."
                )

    def confirmed(self, command: Rewind | Redo, key: str) -> Rewind | Redo:
        """The command after a yes to the preview: merges are accepted, conflicting files are left."""
        merges = [file.path for file in self.of_kind("merge") if file.path not in command.leave]
        stuck = [file.path for file in self.of_kind("conflict", "lost")]
        update: dict[str, Any] = {
            "accept": (*command.accept, *merges),
            "leave": tuple(dict.fromkeys([*command.leave, *stuck])),
        }
        if key in PARTS:
            update |= {"files": key != "c", "conversation": key != "f"}
        return replace(command, **update)


def preview_rewind(app: "App", session_id: str, command: Rewind | Redo) -> RewindPreview:
    """What the command would do now; raises UsageProblem where it cannot be done at all."""
    changes = app.history.changes(session_id)
    try:
        going = app.history.going_back(session_id, command)
    except UsageProblem as problem:
        raise UsageProblem(with_change_numbers(str(problem), changes)) from problem
    state = app.state(session_id)
    return RewindPreview(
        session_id,
        command,
        going,
        changes,
        state.turns,
        restores_conversation=isinstance(command, Redo) and state.rewinds[-1].keep is not None,
        waits=bool(state.turn and (state.approvals or state.questions)),
        running=state.turn is not None,
    )


def undo_of(app: "App", session_id: str, change: str = "") -> Rewind:
    """The command that undoes one change set; the last one in place when empty."""
    history = app.history
    found = history.find(session_id, change) if change else last_applied(history.changes(session_id))
    return Rewind(to=found.id, only=True)


def last_applied(changes: Sequence[PastChange]) -> PastChange:
    if found := [change for change in changes if in_place(change)]:
        return found[-1]
    if not changes:
        raise UsageProblem("No file was changed in this session, so there is nothing to undo.")
    last = changes[-1]
    why = f": the last, {last.number}, was never applied" if last.status == "not applied" else ""
    raise UsageProblem(f"None of the changes of this session is in place{why}. `changes` lists them.")


def in_place(change: PastChange) -> bool:
    return change.status == "applied" and change.prepared.by != "rollback"


def net_changes(app: "App", session_id: str, since: str = "") -> list[NetChange]:
    """What is left of the session's changes, or of those from `since` on."""
    if not since and not app.history.changes(session_id):
        return []
    return app.history.net(session_id, since or "1")


def with_change_numbers(text: str, changes: Sequence[PastChange]) -> str:
    """The text with the numbers of change sets instead of their ids."""
    for change in changes:
        text = text.replace(change.id, f"change {change.number}")
    return text


MAX_SHOWN_BYTES = 1_000_000
"""Of a file's text, in a view of a change."""


class ChangedText(NamedTuple):
    """A file before and after a change; None where there is none."""

    path: str
    was: str
    """Its path before a move."""
    old: str | None
    new: str | None


def changed_texts(app: "App", prepared: ChangePrepared) -> list[ChangedText]:
    """The texts of a change set, without files that are large, not text, or no longer stored."""
    found = []
    for file in prepared.files:
        datas = [app.log.blob(each) if each else b"" for each in (file.old_sha256, file.new_sha256)]
        if any(data is None or len(data) > MAX_SHOWN_BYTES or b"\0" in data for data in datas):
            continue
        old, new = (decode_lossy(data or b"") for data in datas)
        texts = (old if file.old_sha256 else None, new if file.new_sha256 else None)
        found.append(ChangedText(file.destination or file.path, file.path, *texts))
    return found
