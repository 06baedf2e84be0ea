"""The record: requests to models with their raw answers, figures, and the disk space that it takes."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.app.app import App
from handrail.app.history.audit import (
    AuditedRequest,
    audit_requests,
    audit_workspace,
    exchange_of,
    numbered_request,
)
from handrail.app.history.sessions import routing_counts
from handrail.app.history.stats import DayCount, daily_counts
from handrail.interfaces.http.endpoint import Call, Endpoint
from handrail.interfaces.http.errors import not_found
from handrail.protocol.values import Value

if TYPE_CHECKING:
    from handrail.app.history.changes import SpareContents


class RequestList(Value):
    requests: tuple[AuditedRequest, ...]


class RawRequest(Value):
    """A request as it was sent, the answer as it came, and what was understood of it."""

    audited: AuditedRequest
    request: str | None
    """Null where it is no longer stored. Bytes that are not UTF-8 are replaced."""
    answer: str | None


async def list_requests(call: Call) -> RequestList:
    """The session's requests to models, oldest first."""
    found = await call.app.query(lambda app: audit_requests(app, call.session_id))
    return RequestList(tuple(found))


async def show_request(call: Call) -> RawRequest:
    """One request by its number: the bytes sent and received, beside what was understood."""
    number = call.names["number"]
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise not_found(f"{number!r} is not the number of a request.", "GET requests lists them.")

    def show(app: App) -> RawRequest:
        audited = numbered_request(audit_requests(app, call.session_id), int(number))
        sent, received = exchange_of(app, audited)
        return RawRequest(audited, _text(sent), _text(received))

    return await call.app.query(show)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


class AuditQuery(Value):
    model: Annotated[str, Meta(max_length=500)] = ""
    purpose: Annotated[str, Meta(max_length=100)] = ""
    """`answer`, `stage`, `summary`, `route`, ..."""
    finish: Annotated[str, Meta(max_length=100)] = ""
    """`stop`, `tool_calls`, `length`, `failed`, ..."""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class SessionRequest(Value):
    session_id: str
    request: AuditedRequest


class WorkspaceRequests(Value):
    requests: tuple[SessionRequest, ...]


async def list_all_requests(call: Call, query: AuditQuery) -> WorkspaceRequests:
    """The latest requests of all sessions, the newest first."""

    def wanted(one: AuditedRequest) -> bool:
        pairs = ((query.model, one.model), (query.purpose, one.purpose), (query.finish, one.finish))
        return all(given in ("", value) for given, value in pairs)

    found = await call.app.query(lambda app: audit_workspace(app, wanted, query.limit))
    return WorkspaceRequests(tuple(SessionRequest(*each) for each in found))


class StatsQuery(Value):
    session: Annotated[str, Meta(max_length=100)] = ""
    """Of this session alone."""


class Figures(Value):
    days: tuple[DayCount, ...]


async def figures(call: Call, query: StatsQuery) -> Figures:
    """Cost, tokens, corrections and decisions, by day."""
    return Figures(tuple(await call.app.query(lambda app: daily_counts(app, query.session))))


class RouteCount(Value):
    by: str
    route: str
    band: str
    total: int
    applied: int
    corrected: int


class RouteCounts(Value):
    routes: tuple[RouteCount, ...]


async def route_counts(call: Call) -> RouteCounts:
    """Which routes messages took, and what came of it."""
    found = await call.app.query(routing_counts)
    return RouteCounts(tuple(RouteCount(*each) for each in found))


class Stored(Value):
    contents: int
    bytes: int


class StorageReport(Value):
    sessions: int
    log_bytes: int
    limit: int
    all: Stored
    needed: Stored
    """What a rewind or a conversation still needs."""
    spare: Stored
    droppable: Stored
    """What a prune would delete."""


async def storage(call: Call) -> StorageReport:
    """How much disk space the sessions take, and how much of it is needed."""
    found = await call.app.query(lambda app: app.history.storage())
    return StorageReport(
        found.sessions,
        found.stored_bytes,
        found.limit,
        Stored(found.contents.contents, found.contents.size),
        Stored(found.needed.contents, found.needed.size),
        _spare(found.spare),
        _spare(found.droppable),
    )


def _spare(found: "SpareContents") -> Stored:
    return Stored(found.contents, found.size)


async def prune_storage(call: Call) -> Stored:
    """Delete the oldest contents that nothing needs, until the rest is within the limit."""
    return _spare(call.app.history.prune())


AUDIT_ENDPOINTS = (
    Endpoint("GET", "/sessions/{session}/requests", list_requests),
    Endpoint("GET", "/sessions/{session}/requests/{number}", show_request),
    Endpoint("GET", "/requests", list_all_requests),
    Endpoint("GET", "/stats", figures),
    Endpoint("GET", "/stats/router", route_counts),
    Endpoint("GET", "/storage", storage),
    Endpoint("POST", "/storage/prune", prune_storage),
)
