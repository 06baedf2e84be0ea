"""What the user has written in a session, in their own words."""

from handrail.protocol.events import UserMessage
from handrail.sessions.handle import Session, recorded


def user_texts(session: Session) -> list[str]:
    """The user's messages since the last compaction, without what was attached to them."""
    rows = session.log.read(session.stream, after=session.state.cut.upto)
    events = (recorded(row).event for row in rows if row.type == "user_message")
    return [event.text for event in events if isinstance(event, UserMessage)]
