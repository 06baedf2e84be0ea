"""A command that the user picked is approved by that, this once and in exactly these words."""

from handrail.policy.commands.script import unreadable
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalPicked,
    QuestionAnswered,
    QuestionAsked,
)
from handrail.sessions.batch import Planned
from handrail.sessions.handle import Session
from handrail.tools.ports import Asker
from handrail.tools.running import WITH_NETWORK


class PickedAsker:
    """Asks about everything but the picked command itself; what is denied never comes here."""

    def __init__(self, session: Session, asker: Asker) -> None:
        self._session = session
        self._asker = asker

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered:
        """The pick is the answer, and is recorded as such; what the user could not see is asked about."""
        planned = self._picked(asked.call_id)
        if planned is None or asked.preview != shown(planned) or unreadable(planned.command):
            return await self._asker.approval(asked)
        self._session.append(
            ApprovalPicked(
                turn_id=asked.turn_id,
                call_id=asked.call_id,
                tool=asked.tool,
                preview=asked.preview,
                why=asked.why,
                key=asked.key,
            )
        )
        return ApprovalAnswered(approval_id=asked.approval_id, decision="once")

    async def question(self, asked: QuestionAsked) -> QuestionAnswered:
        return await self._asker.question(asked)

    def _picked(self, call_id: str) -> Planned | None:
        turn = self._session.state.turn
        batch = turn.batch if turn else None
        if batch is None or batch.call_id != call_id:
            return None
        planned = batch.planned[batch.number - 1]
        return planned if planned.by_user else None


def shown(planned: Planned) -> str:
    """The command as an approval would show it."""
    return f"{WITH_NETWORK * planned.network}{planned.command}"
