"""Where a stage in the conversation stands that another process began."""

from handrail.protocol.events import Answered
from handrail.sessions.handle import Session
from handrail.sessions.transcript import Replied

CUT_OFF = "[Handrail was closed while you answered. Answer again, from the start.]"


def last_answer(session: Session) -> Answered | None:
    """The answer of the open stage that nothing has come after: it is the end of it, or was cut off."""
    run = session.state.run
    last = session.transcript[-1] if session.transcript else None
    if run is None or run.open is None or not isinstance(last, Replied):
        return None
    if last.calls or last.seq <= run.open.seq:
        return None
    (recorded,) = session.read_after(last.seq - 1, 1)
    return recorded.event if isinstance(recorded.event, Answered) else None
