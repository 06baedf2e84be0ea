"""Wake-ups: tells everyone who waits that something may have changed."""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import anyio

from handrail.protocol.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked
from handrail.sessions.session import Session

IDLE_SECONDS, BUSY_SECONDS, BUSY_FOR = 0.025, 0.005, 1.0
"""Between two checks for commits by other processes; the shorter one for a while after a commit."""
UserAnswer = TypeVar("UserAnswer", ApprovalAnswered, QuestionAnswered)


class Wakeup:
    """Wakes those who wait. Read `version`, look, then `wait(version)`: no notification is missed."""

    def __init__(self, also: "Wakeup | None" = None) -> None:
        """`also` is notified with this one."""
        self.version = 0
        self._also = also
        self._event = anyio.Event()

    def notify(self) -> None:
        self.version += 1
        event, self._event = self._event, anyio.Event()
        event.set()
        if self._also:
            self._also.notify()

    async def wait(self, seen: int) -> None:
        """Return as soon as there is a later version than `seen`."""
        while self.version == seen:
            await self._event.wait()


async def notify_on_commits(wakeup: Wakeup, data_version: Callable[[], int]) -> None:
    version, busy_until = data_version(), 0.0
    while True:
        await anyio.sleep(BUSY_SECONDS if time.monotonic() < busy_until else IDLE_SECONDS)
        if (now := data_version()) != version:
            version, busy_until = now, time.monotonic() + BUSY_FOR
            wakeup.notify()


class SessionAsker(NamedTuple):
    """Asks the user by an event, and waits for the answer in the log, from any interface."""

    session: Session
    wakeup: Wakeup
    answerable: bool

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered:
        """The decision. A call is asked about once, even over a restart, unless its effect has changed."""
        session = self.session
        decided = session.state.decided.get(asked.call_id)
        if decided and decided.answer.decision != "cancelled" and _same_decision(decided.asked, asked):
            return decided.answer
        of_call = [each for each in session.state.approvals.values() if each.call_id == asked.call_id]
        pending = next((each for each in of_call if _same_decision(each, asked)), None)
        if pending is None:
            cancelled = (
                ApprovalAnswered(approval_id=each.approval_id, decision="cancelled") for each in of_call
            )
            session.append(*cancelled, asked)
        wanted = (pending or asked).approval_id

        def look() -> ApprovalAnswered | None:
            decided = session.state.decided.get(asked.call_id)
            return decided.answer if decided and decided.asked.approval_id == wanted else None

        return await self._answer(look)

    async def question(self, asked: QuestionAsked) -> QuestionAnswered:
        """The user's answer; at once `nobody` where nobody can answer."""
        if not self.answerable:
            nobody = QuestionAnswered(question_id=asked.question_id, answer="", by="nobody")
            self.session.append(asked, nobody)
            return nobody
        state = self.session.state
        posed = any(each.call_id == asked.call_id for each in state.questions.values())
        if not posed and asked.call_id not in state.told:
            self.session.append(asked)
        return await self._answer(lambda: self.session.state.told.get(asked.call_id))

    async def _answer(self, look: Callable[[], UserAnswer | None]) -> UserAnswer:
        while True:
            seen = self.wakeup.version
            if answer := look():
                return answer
            await self.wakeup.wait(seen)


def _same_decision(asked: ApprovalAsked, other: ApprovalAsked) -> bool:
    """Whether a decision about one is valid for the other."""
    same = asked.tool == other.tool and asked.key == other.key
    return same and (asked.summary, asked.preview) == (other.summary, other.preview)
