"""Sessions: list, search, create, rename, fork, delete, export, import, and their events."""

import tempfile
from pathlib import Path
from shutil import rmtree
from typing import Annotated

import anyio
from msgspec import UNSET, Meta, UnsetType
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from handrail.app.command_checks import checked_command
from handrail.app.history.sessions import SessionInfo, change_labels, search_text, send_and_wait
from handrail.interfaces.http.endpoint import BYTES, EVENT_STREAM, Call, Endpoint, Upload
from handrail.interfaces.http.errors import ApiError
from handrail.interfaces.http.event_feed import EventStream, RecordedEvent
from handrail.protocol.commands import (
    Command,
    CompleteTodo,
    Delete,
    Rename,
    Restore,
    SelectIntent,
    SetMode,
    SetModel,
    SetRoute,
    SetStatus,
)
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ApprovalAsked, QuestionAsked
from handrail.protocol.values import LabelName, Mode, Role, SessionStatus, Todo, Usage, Value

MAX_SEQ = 2**53
MAX_IMPORT = 500_000_000
Name = Annotated[str, Meta(min_length=1, max_length=500)]
Title = Annotated[str, Meta(min_length=1, max_length=200)]
Seq = Annotated[int, Meta(ge=0, le=MAX_SEQ)]


class SessionList(Value):
    sessions: tuple[SessionInfo, ...]


class ListQuery(Value):
    search: Annotated[str, Meta(max_length=500)] = ""
    """Words of a title or the start of an id."""
    status: SessionStatus | None = None
    """Only these; without it, all but the archived ones."""
    label: Annotated[str, Meta(max_length=100)] = ""
    deleted: bool = False
    """Also sessions that were deleted or archived."""


class NewSession(Value):
    mode: Mode | UnsetType = UNSET
    model: Name | UnsetType = UNSET
    route: Name | UnsetType = UNSET
    intent: str | UnsetType = UNSET


class SessionDetail(Value):
    """A session as it is now; `seq` is the last event that this contains."""

    id: str
    seq: int
    title: str
    status: SessionStatus
    labels: tuple[str, ...]
    mode: Mode
    models: dict[Role, str]
    last_model: str
    intent: str
    route: str
    deleted: bool
    copied: str
    forked_from: str
    turns: int
    running: bool
    """A turn has begun and not ended."""
    waits: bool
    """It waits for the user: an approval, a question, a paused run, or an unclear message."""
    held: bool
    """This server runs it; otherwise another process, or nobody."""
    last_exchange: int
    """The sequence number before the last message that started a turn."""
    approvals: tuple[ApprovalAsked, ...]
    questions: tuple[QuestionAsked, ...]
    todos: tuple[Todo, ...]
    background: dict[str, str]
    """Commands in the background, by id."""
    usage: Usage
    cost_usd: float
    cost_known: bool
    redoable: int
    """How many rewinds can be redone."""


def session_detail(call: Call, session_id: str) -> SessionDetail:
    app = call.app
    seq = app.last_seq(session_id)
    state = app.state(session_id)
    return SessionDetail(
        id=session_id,
        seq=seq,
        title=state.title,
        status=state.status,
        labels=tuple(state.labels),
        mode=state.mode,
        models=state.models,
        last_model=state.last_model,
        intent=state.intent,
        route=state.routes.chosen,
        deleted=state.deleted,
        copied=state.copied,
        forked_from=state.forked_from,
        turns=state.turns,
        running=state.turn is not None,
        waits=bool(
            state.approvals or state.questions or (not state.turn and (state.paused or state.routes.asked))
        ),
        held=app.is_holder(session_id),
        last_exchange=app.last_exchange(session_id),
        approvals=tuple(state.approvals.values()),
        questions=tuple(state.questions.values()),
        todos=tuple(state.todos),
        background={key: each.command for key, each in state.background.running.items()},
        usage=state.usage,
        cost_usd=state.cost_usd,
        cost_known=state.cost_known,
        redoable=len(state.rewinds),
    )


async def list_sessions(call: Call, query: ListQuery) -> SessionList:
    """Sessions of the workspace, the last used first."""
    words = query.search.lower().split()
    found = [
        info
        for info in call.app.sessions(status=query.status, label=query.label, deleted=query.deleted)
        if info.id.startswith(query.search) or all(word in info.title.lower() for word in words)
    ]
    return SessionList(tuple(found))


async def create_session(call: Call, body: NewSession) -> SessionDetail:
    """Create a session."""
    wanted = settings_commands(body)
    for command in wanted:
        await checked_command(call.app, "", command)  # a wrong value must not leave a session
    session_id = call.app.new_session()
    await send_and_wait(call.app, session_id, *wanted)
    return session_detail(call, session_id)


async def get_session(call: Call) -> SessionDetail:
    """One session: settings, todos, and what waits for the user."""
    return session_detail(call, call.session_id)


class SessionPatch(NewSession):
    title: Title | UnsetType = UNSET
    status: SessionStatus | UnsetType = UNSET
    add_labels: tuple[LabelName, ...] = ()
    remove_labels: tuple[str, ...] = ()


def settings_commands(body: NewSession) -> list[Command]:
    wanted: list[Command] = []
    wanted += [SetMode(mode=body.mode)] if body.mode is not UNSET else []
    wanted += [SetModel(model=body.model)] if body.model is not UNSET else []
    wanted += [SetRoute(route=body.route)] if body.route is not UNSET else []
    wanted += [SelectIntent(intent_id=body.intent)] if body.intent is not UNSET else []
    return wanted


async def patch_session(call: Call, body: SessionPatch) -> SessionDetail:
    """Rename a session, or set its status, labels, mode, model, route or intent."""
    wanted = settings_commands(body)
    wanted += [Rename(title=" ".join(body.title.split()))] if body.title is not UNSET else []
    wanted += [SetStatus(status=body.status)] if body.status is not UNSET else []
    if body.add_labels or body.remove_labels:
        state = call.app.state(call.session_id)
        wanted.append(change_labels(state, body.add_labels, body.remove_labels))
    await send_and_wait(call.app, call.session_id, *wanted)
    return session_detail(call, call.session_id)


async def delete_session(call: Call) -> SessionDetail:
    """Hide a session from lists; `restore` undoes this."""
    await send_and_wait(call.app, call.session_id, Delete())
    return session_detail(call, call.session_id)


async def restore_session(call: Call) -> SessionDetail:
    """Bring a deleted session back."""
    await send_and_wait(call.app, call.session_id, Restore())
    return session_detail(call, call.session_id)


class ForkBody(Value):
    turn: Annotated[int, Meta(ge=1, le=MAX_SEQ)] | None = None
    """As it was after this turn; the whole session otherwise."""


async def fork_session(call: Call, body: ForkBody) -> SessionDetail:
    """Make a new session that starts as a copy."""
    return session_detail(call, call.app.fork(call.session_id, body.turn))


async def export_session(call: Call) -> FileResponse:
    """The session with everything that belongs to it, as one file."""
    folder = Path(tempfile.mkdtemp(prefix="handrail-export-"))
    target = folder / f"{call.session_id}.handrail"
    try:
        await call.app.query(lambda app: app.export(call.session_id, target))
    except BaseException:
        rmtree(folder)
        raise
    done = BackgroundTask(rmtree, folder)
    return FileResponse(target, media_type=BYTES, filename=target.name, background=done)


async def import_session(call: Call, body: Upload) -> SessionDetail:
    """Read a session that was exported, as a new session."""
    with tempfile.TemporaryDirectory(prefix="handrail-import-") as folder:
        source = Path(folder, "session")
        async with await anyio.open_file(source, "wb") as file:
            async for part in body.parts:
                await file.write(part)
        try:
            session_id = await call.app.query(lambda app: app.import_session(source))
        except UsageProblem as problem:
            raise UsageProblem(str(problem).replace(str(source), "The file")) from problem
    return session_detail(call, session_id)


class EventsQuery(Value):
    after: Seq = 0
    """The sequence number of the last event that the reader has; `Last-Event-ID` counts instead, if sent."""


async def session_events(call: Call, query: EventsQuery) -> EventStream:
    """The session's events after a place, then everything as it happens (server-sent events)."""
    given = call.request.headers.get("last-event-id", "")
    if given and not (given.isascii() and given.isdecimal() and len(given) < 17):
        raise ApiError(400, "invalid_request", "Last-Event-ID is not a number.", "Send the id of an event.")
    after, last = int(given or query.after), call.app.last_seq(call.session_id)
    if after > last:
        raise ApiError(
            409,
            "unknown_event",
            f"The session has {last} events, so none after {after}.",
            "Read the session again from its beginning.",
        )
    return EventStream(call.workspace.feeds, call.session_id, after)


class PageQuery(Value):
    after: Seq = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 200


class EventPage(Value):
    events: tuple[RecordedEvent, ...]
    last: int
    """The sequence number of the session's last event."""


async def read_events(call: Call, query: PageQuery) -> EventPage:
    """Some of the session's events, for reading backwards in a long session."""
    found = call.app.read_events(call.session_id, query.after, query.limit)
    events = tuple(RecordedEvent(one.seq, one.at, one.event) for one in found)
    return EventPage(events, call.app.last_seq(call.session_id))


class SearchQuery(Value):
    text: Annotated[str, Meta(min_length=1, max_length=500)]
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


class Match(Value):
    seq: int
    at: float
    type: str
    """Of the event."""
    excerpt: str


class Matches(Value):
    matches: tuple[Match, ...]


async def search_session(call: Call, query: SearchQuery) -> Matches:
    """Find text in a session: messages, answers, and what tools showed; the latest first."""
    found = await call.app.query(lambda app: search_text(app, call.session_id, query.text, most=query.limit))
    return Matches(tuple(Match(*each) for each in found))


class TodoList(Value):
    todos: tuple[Todo, ...]


async def session_todos(call: Call) -> TodoList:
    """The session's todo list."""
    return TodoList(tuple(call.app.state(call.session_id).todos))


async def complete_todo(call: Call) -> TodoList:
    """Mark a todo as done."""
    wanted = call.names["todo"]
    if all(todo.id != wanted for todo in call.app.state(call.session_id).todos):
        raise ApiError(404, "not_found", f"There is no todo {wanted!r}.", "GET todos lists them.")
    await send_and_wait(call.app, call.session_id, CompleteTodo(todo_id=wanted))
    return await session_todos(call)


SESSION_ENDPOINTS = (
    Endpoint("GET", "/sessions", list_sessions),
    Endpoint("POST", "/sessions", create_session, status=201),
    Endpoint("POST", "/sessions/import", import_session, 201, accepts=BYTES, max_body=MAX_IMPORT),
    Endpoint("GET", "/sessions/{session}", get_session),
    Endpoint("PATCH", "/sessions/{session}", patch_session),
    Endpoint("DELETE", "/sessions/{session}", delete_session),
    Endpoint("POST", "/sessions/{session}/restore", restore_session),
    Endpoint("POST", "/sessions/{session}/fork", fork_session, status=201),
    Endpoint("GET", "/sessions/{session}/export", export_session, returns=BYTES),
    Endpoint("GET", "/sessions/{session}/events", session_events, returns=EVENT_STREAM),
    Endpoint("GET", "/sessions/{session}/log", read_events),
    Endpoint("GET", "/sessions/{session}/search", search_session),
    Endpoint("GET", "/sessions/{session}/todos", session_todos),
    Endpoint("POST", "/sessions/{session}/todos/{todo}/complete", complete_todo),
)
