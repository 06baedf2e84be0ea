"""What the user has written in a session, in their own words."""

from handrail.protocol.events import SessionCopied, UserMessage
from handrail.sessions.handle import Session, recorded

OF_INTEREST = ("user_message", "session_copied")


def user_texts(session: Session) -> list[str]:
    """The user's messages since the last compaction or import, without what was attached to them."""
    rows = session.log.read(session.stream, after=session.state.cut.upto)
    texts: list[str] = []
    for event in (recorded(row).event for row in rows if row.type in OF_INTEREST):
        match event:
            case UserMessage(suggested=False):
                texts.append(event.text)
            case SessionCopied(how="import"):
                texts.clear()  # they came in a file, from whoever wrote it
    return texts
