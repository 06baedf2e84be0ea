"""The stream of a conversation's blocks to one page: what is new or different, as it happens."""

import time
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
from msgspec.json import encode

from handrail.app.app import App
from handrail.app.history.sessions import conversation_start, suggested_commands
from handrail.interfaces.cli.activity import Activity
from handrail.interfaces.cli.render.styles import one_line
from handrail.interfaces.web.conversation.blocks import Block, clock
from handrail.interfaces.web.conversation.timeline import Timeline
from handrail.interfaces.web.html import EMPTY, Html, h
from handrail.protocol import events

SHOWN_TURNS = 10
"""A page starts with so many turns; earlier ones are fetched when the user asks for them."""
PAGE_EVENTS = 500
DRAW_SECONDS = 0.05
"""The page is drawn at most so often."""
REFRESHES: dict[type, tuple[str, ...]] = {
    events.TurnStarted: ("sessions", "run", "head"),
    events.TurnFinished: ("sessions", "run", "head", "files", "changes"),
    events.StageStarted: ("run",),
    events.StageCompleted: ("run",),
    events.GateFailed: ("run",),
    events.RunPaused: ("run", "sessions"),
    events.RunRepaired: ("run",),
    events.Answered: ("run", "head"),
    events.ChangeApplied: ("changes", "files"),
    events.ChangeAbandoned: ("changes",),
    events.Rewound: ("changes", "todos"),
    events.Redone: ("changes", "todos"),
    events.TodosChanged: ("todos",),
    events.TodoCompleted: ("todos",),
    events.ApprovalAsked: ("sessions", "run"),
    events.ApprovalAnswered: ("sessions", "run"),
    events.QuestionAsked: ("sessions", "run"),
    events.QuestionAnswered: ("sessions", "run"),
    events.PlanApproved: ("todos", "head"),
    events.SessionStatusSet: ("sessions",),
    events.SessionLabelled: ("sessions",),
    events.SessionRenamed: ("sessions", "head"),
    events.ModeSet: ("head",),
    events.ModelSet: ("head",),
    events.IntentSelected: ("head",),
    events.RouteSet: ("head",),
    events.CheckFinished: ("run",),
    events.SessionDeleted: ("sessions",),
    events.SessionRestored: ("sessions",),
}
"""Parts of the page that an event makes out of date."""


class Shown(NamedTuple):
    """A conversation up to an event."""

    timeline: Timeline
    activity: Activity
    start: int
    seq: int


async def show(
    app: App, session_id: str, knowledge: str, *, start: int | None = None, upto: int | None = None
) -> Shown:
    """Fold the events of the last turns, or those after `start`. `knowledge`: the address of that place."""
    end = app.last_seq(session_id) if upto is None else upto
    if start is None:
        start = conversation_start(app, session_id, end, SHOWN_TURNS)
    timeline, activity = Timeline(0 if start == 0 else -1, knowledge), Activity()
    seq = start
    while seq < end:
        found = app.read_events(session_id, seq, min(PAGE_EVENTS, end - seq))
        if not found:
            break
        for one in found:
            timeline.apply(one)
            activity.saw(one)
        seq = found[-1].seq
        await anyio.lowlevel.checkpoint()  # others are served between two pages
    if not timeline.running:
        timeline.suggest(await _suggestions(timeline))
    return Shown(timeline, activity, start, seq)


async def _suggestions(timeline: Timeline) -> tuple[str, ...]:
    turn = timeline.turn
    if turn is None or not timeline.suggestions:
        return ()
    return turn.commands_suggested or await suggested_commands(timeline.suggestions)


async def block_stream(
    app: App, session_id: str, knowledge: str, start: int, after: int
) -> AsyncGenerator[bytes, None]:
    """Server-sent events with the blocks that change after an event; their ids are sequence numbers."""
    timeline, activity, _, seq = await show(app, session_id, knowledge, start=start, upto=after)
    timeline.tree.forget_html()
    yield b"retry: 400\n\n"
    yield _message(seq, _payload(timeline, activity, [], ("sessions",)))
    async for batch in app.follow_batches(session_id, seq, pace=lambda: DRAW_SECONDS):
        drawn, refresh, last = dict[str, Block](), dict[str, None](), 0
        for item in batch:
            if isinstance(item, events.Delta):
                activity.heard(item, time.time())
                blocks = timeline.stream(item)
            else:
                blocks = timeline.apply(item)
                activity.saw(item)
                last = item.seq
                refresh |= dict.fromkeys(REFRESHES.get(type(item.event), ()))
                if isinstance(item.event, events.TurnFinished):
                    blocks += timeline.suggest(await _suggestions(timeline))
            drawn |= {block.id: block for block in blocks}  # only the latest, in the place of the first
        yield _message(last, _payload(timeline, activity, [*drawn.values()], tuple(refresh)))


def _payload(
    timeline: Timeline, activity: Activity, blocks: list[Block], refresh: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "blocks": [
            {"id": each.id, "parent": each.parent, "html": each.element(), "holds": bool(each.tag)}
            for each in blocks
        ],
        "status": status_line(activity),
        "running": timeline.running,
        "waiting": len(timeline.waiting),
        "asked": next(iter(timeline.waiting.values()), ""),
        "seq": timeline.seq,
        "refresh": refresh,
    }


def status_line(activity: Activity) -> Html:
    """What a turn does now, and for how long."""
    if not activity.word:
        return EMPTY
    what = one_line(activity.what)
    return h("span", h("strong", activity.word), f" {what} " if what else " ", clock(activity.since))


def _message(seq: int, payload: dict[str, Any]) -> bytes:
    head = b"id: %d\n" % seq if seq else b""
    return head + b"data: " + encode(payload, enc_hook=str) + b"\n\n"
