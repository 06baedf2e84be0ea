"""Where in a session's log to begin showing it."""

from handrail.storage.log import Log

PAGE = 200
MOST_PAGES = 5


def last_seq(log: Log, stream: str) -> int:
    """The sequence number of the last event."""
    head = log.head(stream)
    return head.seq if head else 0


def last_exchange(log: Log, stream: str) -> int:
    """The sequence number before the last turn's message; looks back only so far in a very long turn."""
    end = last_seq(log, stream)
    for page in range(MOST_PAGES):
        upto = end - page * PAGE
        after = max(0, upto - PAGE)
        rows = log.read(stream, after=after, limit=upto - after) if upto > 0 else []
        starts = [row.seq for row in rows if row.type == "turn_started"]
        if starts:
            # The message and the start of its turn are written together, in this order.
            return max(0, starts[-1] - 2)
        if after == 0:
            return 0
    return max(0, end - PAGE)
