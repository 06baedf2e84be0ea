"""A stage that is one structured answer, in the session's conversation."""

from collections.abc import Awaitable, Callable
from typing import Any

from handrail.engine.ending import Ending, cut_short
from handrail.engine.left_off import CUT_OFF
from handrail.engine.pipeline.walker import Done
from handrail.models.structured import schema_of
from handrail.protocol.events import Answered, Nudged
from handrail.sessions.handle import Session
from handrail.sessions.transcript import Replied

TRIES = 2
UNREAD = "[Handrail: your answer cannot be read: {problems}. Give it again, as the JSON object alone.]"
WORDS_ALONE = "The answer does not have the form that was asked for; only its words are used."

Reply = Callable[[dict[str, Any]], Awaitable[Answered]]


async def answer_stage(session: Session, reply: Reply, *, reads_only: bool) -> Done:
    """The answer, as soon as one can be read or was asked for often enough; one in the log counts."""
    schema = schema_of(changing=not reads_only)
    while True:
        answered = _last(session)
        if answered and (done := _done(answered, session.stage.unread)):
            return done
        if session.transcript and isinstance(session.transcript[-1], Replied):
            told = UNREAD.format(problems="; ".join(answered.unread)) if answered else CUT_OFF
            session.append(Nudged(turn_id=session.turn.turn_id, text=told))
        await reply(schema)


def _done(answered: Answered, unread: int) -> Done | None:
    """What the stage came to; None where the answer is asked for again."""
    if answered.structured:
        return Done(Ending("answered"), answered.structured.model_dump(mode="json"), answered.read)
    if answered.end == "stop" and unread < TRIES:
        return None
    told = " ".join(filter(None, (WORDS_ALONE, cut_short(answered))))
    return Done(Ending("answered", told), {"summary": answered.text, "unread": list(answered.unread)})


def _last(session: Session) -> Answered | None:
    """The last whole answer of the stage that is open."""
    seq = session.stage.answer
    if not seq:
        return None
    (recorded,) = session.read_after(seq - 1, 1)
    return recorded.event if isinstance(recorded.event, Answered) else None
