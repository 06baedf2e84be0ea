"""Asking the user: the question is an event, the answer is an event, and both survive a restart."""

from collections.abc import Callable
from typing import TypeVar

from handrail.engine.bell import Bell
from handrail.protocol.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked
from handrail.sessions.handle import Session

Answer = TypeVar("Answer", ApprovalAnswered, QuestionAnswered)


class SessionAsker:
    """Waits for the user's word in the session's log, from whichever interface it comes."""

    def __init__(self, session: Session, bell: Bell, *, answerable: bool) -> None:
        self._session = session
        self._bell = bell
        self._answerable = answerable

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered:
        """The decision; asks once for a call, also over a restart, unless it would now do something else."""
        session = self._session
        decided = session.state.decided.get(asked.call_id)
        if decided and decided.answer.decision != "cancelled" and _same(decided.asked, asked):
            return decided.answer
        of_call = [each for each in session.state.approvals.values() if each.call_id == asked.call_id]
        pending = next((each for each in of_call if _same(each, asked)), None)
        if pending is None:
            outdated = [
                ApprovalAnswered(approval_id=each.approval_id, decision="cancelled") for each in of_call
            ]
            session.append(*outdated, asked)
        wanted = (pending or asked).approval_id

        def look() -> ApprovalAnswered | None:
            decided = session.state.decided.get(asked.call_id)
            return decided.answer if decided and decided.asked.approval_id == wanted else None

        return await self._answer(look)

    async def question(self, asked: QuestionAsked) -> QuestionAnswered:
        """The user's answer, or at once that nobody is there to give one."""
        if not self._answerable:
            nobody = QuestionAnswered(question_id=asked.question_id, answer="", by="nobody")
            self._session.append(asked, nobody)
            return nobody
        state = self._session.state
        posed = any(each.call_id == asked.call_id for each in state.questions.values())
        if not posed and asked.call_id not in state.told:
            self._session.append(asked)
        return await self._answer(lambda: self._session.state.told.get(asked.call_id))

    async def _answer(self, look: Callable[[], Answer | None]) -> Answer:
        while True:
            ticket = self._bell.ticket()
            if answer := look():
                return answer
            await ticket.wait()


def _same(asked: ApprovalAsked, other: ApprovalAsked) -> bool:
    """Whether a decision about one holds for the other."""
    same = asked.tool == other.tool and asked.key == other.key
    return same and (asked.summary, asked.preview) == (other.summary, other.preview)
