"""The sessions of a workspace as a list, and finding one by id or title."""

from msgspec import DecodeError
from msgspec.json import decode
from msgspec.structs import asdict

from handrail.protocol.errors import UsageProblem
from handrail.protocol.ids import session_stream
from handrail.sessions.session import Label, Session, label_of
from handrail.storage.event_log import Log


class SessionInfo(Label, kw_only=True):
    id: str
    touched: float


def list_sessions(log: Log, *, deleted: bool = False) -> list[SessionInfo]:
    """Sessions, last used first, archived ones too; `deleted` includes deleted ones."""
    infos = []
    for head in log.heads("session:"):
        session_id = head.stream.partition(":")[2]
        try:
            label = decode(head.label, type=Label)
        except DecodeError:  # missing or damaged: it can always be computed again
            label = label_of(Session(log, session_id).load().state)
        if deleted or not label.deleted:
            infos.append(SessionInfo(id=session_id, touched=head.touched / 1000, **asdict(label)))
    return infos


def find_session(log: Log, text: str) -> str:
    """The session that the text names: an id, the start of one, or part of a title; empty: the last one."""
    if log.head(session_stream(text)):
        return text
    known = list_sessions(log, deleted=True)
    if not text:
        known = [info for info in known if not info.deleted and info.status != "archived"][:1]
    found = [info for info in known if info.id.startswith((text, f"s_{text}"))]
    found = found or [info for info in known if text.lower() in info.title.lower()]
    found = [info for info in found if not info.deleted] or found
    if len(found) == 1:
        return found[0].id
    if not found:
        raise UsageProblem(
            f"No session in this folder matches {text!r}. `handrail sessions` lists them."
            if text
            else "There is no session in this folder yet. Start one with `handrail`."
        )
    listed = ", ".join(info.id for info in found[:5])
    raise UsageProblem(f"{text!r} matches {len(found)} sessions: {listed}. Give more of the id.")
