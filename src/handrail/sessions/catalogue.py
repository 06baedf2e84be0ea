"""The sessions of a workspace as a list, and finding one by a few words."""

from typing import NamedTuple

from pydantic import ValidationError

from handrail.protocol.errors import UsageProblem
from handrail.protocol.ids import session_stream
from handrail.sessions.handle import Label, Session, label_of
from handrail.storage.log import Head, Log


class SessionInfo(NamedTuple):
    """A session as a list shows it."""

    id: str
    title: str
    turns: int
    touched: float
    model: str
    cost_usd: float
    running: bool
    deleted: bool
    copied: str = ""
    """`fork` or `import`, for one that came from another session."""
    waiting: bool = False
    """A run of it is paused."""


def list_sessions(log: Log, *, deleted: bool = False) -> list[SessionInfo]:
    """Sessions, last used first; with `deleted` those too that were deleted."""
    infos = [_info(log, head) for head in log.heads("session:")]
    return [info for info in infos if deleted or not info.deleted]


def _info(log: Log, head: Head) -> SessionInfo:
    session_id = head.stream.partition(":")[2]
    try:
        label = Label.model_validate_json(head.label)
    except ValidationError:  # never written, or damaged: it can always be made again
        label = label_of(Session(log, session_id).load().state)
    return SessionInfo(
        session_id,
        label.title,
        label.turns,
        head.touched / 1000,
        label.model,
        label.cost_usd,
        label.running,
        label.deleted,
        label.copied,
        label.waiting,
    )


def find_session(log: Log, text: str) -> str:
    """The session that the words mean: an id, the start of one, part of a title; the last when empty."""
    if log.head(session_stream(text)):
        return text
    known = list_sessions(log, deleted=True)
    if not text:
        known = [info for info in known if not info.deleted][:1]
    found = [
        info for info in known if info.id.startswith(text) or info.id.removeprefix("s_").startswith(text)
    ]
    found = found or [info for info in known if text.lower() in info.title.lower()]
    found = [info for info in found if not info.deleted] or found
    if len(found) == 1:
        return found[0].id
    if not found:
        raise UsageProblem(
            f"No session here is called {text!r}; `handrail sessions` lists them."
            if text
            else "There is no session in this folder yet. Start one with `handrail`."
        )
    listed = ", ".join(info.id for info in found[:5])
    raise UsageProblem(f"{text!r} means {len(found)} sessions: {listed}. Give more of the id.")
