"""Questions about the record of requests to models."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from handrail.protocol.values import StructuredAnswer
from handrail.sessions.audit import (
    AuditedCall,
    AuditedRequest,
    RawExchange,
    audit_session,
    numbered_request,
    raw_exchange,
)

if TYPE_CHECKING:
    from handrail.app.app import App

__all__ = ["AuditedCall", "AuditedRequest", "RawExchange", "StructuredAnswer", "numbered_request"]


class FoundRequest(NamedTuple):
    session_id: str
    request: AuditedRequest


def audit_requests(app: "App", session_id: str) -> list[AuditedRequest]:
    """Every request of a session to a model, with what came of it."""
    return audit_session(app.log, session_id)


def audit_workspace(app: "App", wanted: Callable[[AuditedRequest], bool], most: int) -> list[FoundRequest]:
    """The latest requests of all sessions that are wanted, the newest first."""
    found: list[FoundRequest] = []
    for info in app.sessions(deleted=True):  # the last used first
        if len(found) >= most and info.touched < min(each.request.at for each in found[:most]):
            break
        audited = audit_session(app.log, info.id)
        found += [FoundRequest(info.id, request) for request in audited if wanted(request)]
        found.sort(key=lambda each: each.request.at, reverse=True)
    return found[:most]


def exchange_of(app: "App", request: AuditedRequest) -> RawExchange:
    return raw_exchange(app.log, request)
