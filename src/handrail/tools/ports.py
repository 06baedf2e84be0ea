"""What the gate needs from above."""

from typing import Protocol

from handrail.protocol.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked


class Asker(Protocol):
    """Asks the user and waits; records the asking and the answer."""

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered: ...

    async def question(self, asked: QuestionAsked) -> QuestionAnswered: ...
