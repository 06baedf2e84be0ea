"""Where in a session's log to begin showing it."""

from typing import TYPE_CHECKING

from handrail.protocol.ids import session_stream

if TYPE_CHECKING:
    from handrail.app import App

PAGE = 200
MOST_PAGES = 5


def now(app: "App", session_id: str) -> int:
    """The sequence number of the last event."""
    head = app.log.head(session_stream(session_id))
    return head.seq if head else 0


def last_exchange(app: "App", session_id: str) -> int:
    """The sequence number before the last turn's message; looks back only so far in a very long turn."""
    end = now(app, session_id)
    for page in range(MOST_PAGES):
        upto = end - page * PAGE
        after = max(0, upto - PAGE)
        rows = app.log.read(session_stream(session_id), after=after, limit=upto - after) if upto > 0 else []
        starts = [row.seq for row in rows if row.type == "turn_started"]
        if starts:
            # The message and the start of its turn are written together, in this order.
            return max(0, starts[-1] - 2)
        if after == 0:
            return 0
    return max(0, end - PAGE)
