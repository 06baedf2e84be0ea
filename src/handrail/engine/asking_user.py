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
        """The decision; asks only once for a call, also when the asking was interrupted by a restart."""
        state = self._session.state
        pending = next((each for each in state.approvals.values() if each.call_id == asked.call_id), None)
        if pending is None:
            self._session.append(asked)
        wanted = (pending or asked).approval_id
        return await self._answer(lambda: self._session.state.said.get(wanted))

    async def question(self, asked: QuestionAsked) -> QuestionAnswered:
        """The user's answer, or at once that nobody is there to give one."""
        if not self._answerable:
            nobody = QuestionAnswered(question_id=asked.question_id, answer="", by="nobody")
            self._session.append(asked, nobody)
            return nobody
        state = self._session.state
        pending = next((each for each in state.questions.values() if each.call_id == asked.call_id), None)
        if pending is None:
            self._session.append(asked)
        wanted = (pending or asked).question_id
        return await self._answer(lambda: self._session.state.told.get(wanted))

    async def _answer(self, look: Callable[[], Answer | None]) -> Answer:
        while True:
            ticket = self._bell.ticket()
            if answer := look():
                return answer
            await ticket.wait()
