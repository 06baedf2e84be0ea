"""The end of a turn that the user's hooks have a word in."""

from collections.abc import Awaitable, Callable

from handrail.engine.ending import Ending
from handrail.sessions.handle import Session
from handrail.sessions.transcript import Replied
from handrail.tools.hooks import Hooks

MOST_DEMANDS = 3
"""How often hooks can make a turn go on."""
STILL = "The hook {hook} still does not let the turn end, after {most} rounds of more work: {text}"
DEMANDED = "The hook {hook} does not agree with how the run ended: {text}"
FAILED = "The hook {hook} failed, so that it has not looked at this turn: {text}. Mend it or take it out."


async def until_let_end(hooks: Hooks, session: Session, answer: Callable[[], Awaitable[Ending]]) -> Ending:
    """The ending that hooks agree to; what they demand the model is told, and it goes on."""
    while True:
        ending = await answer()
        turn = session.turn
        if ending.reason != "answered":
            return ending
        spoke = await hooks.before_end(turn.turn_id, _last_words(session))
        if spoke is None:
            return ending
        if spoke.did == "failed":
            session.append(spoke)
            return Ending("unverified", FAILED.format(hook=spoke.hook, text=spoke.text))
        if turn.demands >= MOST_DEMANDS:
            return Ending("unverified", STILL.format(hook=spoke.hook, text=spoke.text, most=MOST_DEMANDS))
        session.append(spoke)


async def heard_at_end(hooks: Hooks, session: Session, ending: Ending) -> Ending:
    """The end of a run whose last stage no model can be sent back to: what hooks demand is left open."""
    spoke = await hooks.before_end(session.turn.turn_id, _last_words(session))
    if spoke is None:
        return ending
    session.append(spoke)
    told = FAILED if spoke.did == "failed" else DEMANDED
    return Ending("unverified", told.format(hook=spoke.hook, text=spoke.text))


def _last_words(session: Session) -> str:
    said = (entry.text for entry in reversed(session.transcript) if isinstance(entry, Replied))
    return next(said, "")
