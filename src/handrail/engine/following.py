"""Following a session: what has happened, then everything as it happens."""

from collections.abc import AsyncGenerator

from handrail.engine.bell import Bell
from handrail.engine.serving import Serving
from handrail.protocol.events import Delta, Recorded
from handrail.sessions.handle import Session
from handrail.sessions.live import forget, stored_since
from handrail.storage.log import Log

PAGE = 200


async def follow(
    log: Log, serving: Serving, bell: Bell, session_id: str, after: int
) -> AsyncGenerator[Recorded | Delta, None]:
    """Events after a sequence number and text as it streams, from whichever process it comes, for ever."""
    reader = Session(log, session_id)
    seq, offsets = after, dict[tuple[str, str], int]()
    while True:
        ticket = bell.ticket()
        attachment = serving.get(session_id)
        ours = attachment.session if attachment and attachment.session.held else None
        if ours is None or ours.seq > seq:
            for one in (found := reader.read_after(seq, PAGE)):
                seq = one.seq
                forget(offsets, one.event)
                yield one
            if found:
                continue
        if attachment and attachment.failure:
            raise attachment.failure
        new = ours.live.since(offsets) if ours else stored_since(log, reader.stream, offsets)
        for delta in (deltas := list(new)):
            yield delta
        if not deltas:
            await ticket.wait()
