"""A question to a model beside the conversation: recorded, billed, cancellable, and shared with nothing."""

import hashlib
import time
from contextlib import aclosing
from typing import NamedTuple

from anyio import get_cancelled_exc_class

from handrail.context.budget import request_bytes, request_tokens
from handrail.engine.asking import Afford, Cost, as_it_is, spent
from handrail.models.answer import Answer, Collector
from handrail.models.base import Model, Request
from handrail.protocol.errors import BudgetReached, ModelProblem
from handrail.protocol.events import SideAnswered, SideAsked
from handrail.protocol.events.context import Purpose
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import is_storable
from handrail.protocol.values import Effort, Role, Usage
from handrail.sessions.handle import Session

CANCELLED = "It was cancelled."
UNFINISHED = "The answer was cut off at its length limit."


class SideCall(NamedTuple):
    """Whom to ask, and where it is recorded and counted."""

    session: Session
    model: Model
    role: Role
    cost: Cost
    afford: Afford = as_it_is
    effort: Effort | None = None

    async def ask(self, request: Request, purpose: Purpose = "summary") -> SideAnswered:
        """The answer, or the problem; asked once, because nothing waits for it that cannot do without."""
        request_id = new_id("r")
        try:
            request, most_tokens, most_usd = self.afford(self.model, request.changed(effort=self.effort))
        except BudgetReached as reached:
            return SideAnswered(request_id=request_id, problem=str(reached), cost_usd=0.0)
        asked = SideAsked(
            request_id=request_id,
            purpose=purpose,
            model=self.model.name,
            role=self.role,
            prompt_bytes=request_bytes(request),
            prompt_tokens_estimate=request_tokens(request),
            most_tokens=most_tokens,
            most_usd=most_usd,
            effort=request.effort,
            effort_sent=self.model.capabilities.effort_for(request) is not None,
        )
        collector, began = Collector(), time.monotonic()
        self.session.append(asked)
        try:
            async with aclosing(self.model.stream(request)) as parts:
                async for part in parts:
                    collector.add(part)
        except ModelProblem as problem:
            return self._end(
                asked,
                collector.answer(),
                str(problem),
                began,
                billed=problem.billed or collector.answer().usage != Usage(),
            )
        except get_cancelled_exc_class():
            self._end(asked, collector.answer(), CANCELLED, began, billed=True)
            raise
        answer = collector.answer()
        return self._end(asked, answer, UNFINISHED if answer.finish == "length" else "", began, billed=True)

    def _end(
        self, asked: SideAsked, answer: Answer, problem: str, began: float, *, billed: bool
    ) -> SideAnswered:
        ended = SideAnswered(
            request_id=asked.request_id,
            text=answer.text,
            problem=problem,
            usage=answer.usage,
            cost_usd=spent(self.cost, self.model, answer.usage) if billed else 0.0,
            seconds=time.monotonic() - began,
            raw=hashlib.sha256(answer.raw).hexdigest() if answer.raw else "",
        )
        if not is_storable(ended):
            ended = ended.model_copy(update={"text": "", "problem": "The answer cannot be stored."})
        self.session.append(ended, blobs=[answer.raw] if answer.raw else [])
        return ended
