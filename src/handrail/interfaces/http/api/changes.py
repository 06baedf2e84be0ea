"""A session's changes: list, show, net diff; preview and carry out undo, rewind and redo."""

from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
from msgspec import Meta

from handrail.app.app import App
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.events import Recorded, Redone, RewindRefused, Rewound
from handrail.protocol.values import FileChange, Value

if TYPE_CHECKING:
    from handrail.app.history.changes import PastChange, RewindPreview

OUTCOME_SECONDS = 30.0
ChangeName = Annotated[str, Meta(max_length=100)]


class ChangeInfo(Value, kw_only=True):
    """A change set: files that were changed together."""

    id: str
    number: int
    at: float
    seq: int
    turn: int
    by: str
    status: str
    """`applied`, `taken back`, `not applied`, `unfinished` or `elsewhere` (before an import)."""
    why: str
    taken_back_by: str
    takes_back: tuple[str, ...]
    verified: bool | None
    files: tuple[FileChange, ...]
    intent: str
    intent_id: str
    model: str
    cost_usd: float | None


class ChangeList(Value):
    changes: tuple[ChangeInfo, ...]


class FileDiff(Value):
    path: str
    diff: str | None
    """Unified; null where an older version is no longer stored."""
    added: int = 0
    removed: int = 0
    why: str = ""


class ChangeDetail(Value):
    change: ChangeInfo
    diffs: tuple[FileDiff, ...]


class NetDiff(Value):
    files: tuple[FileDiff, ...]


def change_info(change: "PastChange") -> ChangeInfo:
    made = change.prepared
    return ChangeInfo(
        id=change.id,
        number=change.number,
        at=change.at,
        seq=change.seq,
        turn=change.turn,
        by=made.by,
        status=change.status,
        why=change.why,
        taken_back_by=change.taken_back_by,
        takes_back=made.takes_back,
        verified=change.verified,
        files=made.files,
        intent=made.intent,
        intent_id=made.intent_id,
        model=made.model,
        cost_usd=made.cost_usd,
    )


async def list_changes(call: Call) -> ChangeList:
    """The session's change sets, oldest first."""
    found = await call.app.query(lambda app: app.history.changes(call.session_id))
    return ChangeList(tuple(map(change_info, found)))


async def show_change(call: Call) -> ChangeDetail:
    """One change set with its diff; by its number, its id or the end of that."""

    def show(app: App) -> ChangeDetail:
        shown = app.history.show(call.session_id, call.names["change"])
        diffs = [
            FileDiff(each.file.path, each.diff.text, each.diff.added, each.diff.removed)
            if each.diff
            else FileDiff(each.file.path, None)
            for each in shown.files
        ]
        return ChangeDetail(change_info(shown.change), tuple(diffs))

    return await call.app.query(show)


class DiffQuery(Value):
    since: ChangeName = ""
    """The first change set to include; all when empty."""


async def net_diff(call: Call, query: DiffQuery) -> NetDiff:
    """What is left of the session's changes, without those of others."""
    from handrail.app.history.changes import net_changes

    def compare(app: App) -> NetDiff:
        found = net_changes(app, call.session_id, query.since)
        return NetDiff(
            tuple(
                FileDiff(each.path, each.diff.text, each.diff.added, each.diff.removed, each.why)
                if each.diff
                else FileDiff(each.path, None, why=each.why)
                for each in found
            )
        )

    return await call.app.query(compare)


class GoingBack(Value):
    what: Literal["undo", "rewind", "redo"]
    change: ChangeName = ""
    """For `undo` and `rewind`: the change set; the last one in place when empty."""
    turn: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """For `rewind`: to before this turn, instead of a change set."""


class PlannedFile(Value):
    path: str
    kind: str
    """`restore`; `merge` needs the user's agreement; `conflict` and `lost` can only be left as they are."""
    why: str
    diff: str


class Preview(Value, kw_only=True):
    """What an undo, rewind or redo would do now. Nothing is done yet."""

    command: Rewind | Redo
    """Send it to carry it out, with `accept` and `leave` for the files that need a decision."""
    files: tuple[PlannedFile, ...]
    undone: tuple[int, ...]
    """Numbers of the change sets that would be undone, the newest first."""
    turns_set_aside: int
    """How many turns the model would no longer see, if the conversation goes back too."""
    restores_conversation: bool
    parts: str
    """The letters of what could go back: `f` files, `c` conversation, `b` both."""
    not_undone: str
    running: bool
    waits: bool


def _preview(found: "RewindPreview") -> Preview:
    return Preview(
        command=found.command,
        files=tuple(PlannedFile(each.path, each.kind, each.why, each.diff.text) for each in found.files),
        undone=tuple(found.undone),
        turns_set_aside=found.conversation,
        restores_conversation=found.restores_conversation,
        parts=found.ways,
        not_undone=found.not_undone,
        running=found.running,
        waits=found.waits,
    )


async def preview_going_back(call: Call, body: GoingBack) -> Preview:
    """What an undo, rewind or redo would do."""
    from handrail.app.history.changes import preview_rewind, undo_of

    def look(app: App) -> Preview:
        command: Rewind | Redo
        if body.what == "redo":
            command = Redo()
        elif body.what == "undo":
            command = undo_of(app, call.session_id, body.change)
        elif body.turn is not None:
            command = app.history.before_turn(call.session_id, body.turn)
        else:
            found = app.history.find(call.session_id, body.change)
            command = Rewind(to=found.id, conversation=True)
        return _preview(preview_rewind(app, call.session_id, command))

    return await call.app.query(look)


class Outcome(Value):
    event: Rewound | Redone | RewindRefused | None
    """What was done, or why nothing was; null while a turn still runs, after which it is done."""


async def go_back(call: Call, body: Rewind | Redo) -> Outcome:
    """Carry out a rewind, undo or redo that was previewed."""
    seq = call.app.last_seq(call.session_id)
    await call.app.send(call.session_id, body)
    if call.app.state(call.session_id).turn:
        return Outcome(None)
    with anyio.move_on_after(OUTCOME_SECONDS):
        async with aclosing(call.app.follow(call.session_id, seq)) as items:
            async for item in items:
                event = item.event if isinstance(item, Recorded) else None
                if (
                    isinstance(event, Rewound | Redone | RewindRefused)
                    and event.request_id == body.request_id
                ):
                    return Outcome(event)
    return Outcome(None)


CHANGE_ENDPOINTS = (
    Endpoint("GET", "/sessions/{session}/changes", list_changes),
    Endpoint("GET", "/sessions/{session}/changes/{change}", show_change),
    Endpoint("GET", "/sessions/{session}/diff", net_diff),
    Endpoint("POST", "/sessions/{session}/rewind/preview", preview_going_back),
    Endpoint("POST", "/sessions/{session}/rewind", go_back),
)
