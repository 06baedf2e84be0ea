"""Asking the user about a call, and reading what they said."""

from collections.abc import Callable

from handrail.policy.decide import nobody_to_ask
from handrail.policy.decision import Ask
from handrail.policy.facts import Facts
from handrail.protocol.errors import ConfigProblem, ToolRefused
from handrail.protocol.events import ApprovalAsked, QuestionAsked
from handrail.protocol.ids import new_id
from handrail.tools.base import Question
from handrail.tools.gathering import Wanted, file_of
from handrail.tools.ports import Asker
from handrail.tools.recording import refused
from handrail.tools.unasked import entry_of


class Approving:
    """Brings calls before the user; raises ToolRefused where the answer is no."""

    def __init__(self, asker: Asker, allow: Callable[[str], None]) -> None:
        """`allow` puts an entry on the list of allowed commands, for this turn and from now on."""
        self._asker = asker
        self._put_on_list = allow

    async def ask(self, wanted: Wanted, facts: Facts, ask: Ask, preview: str) -> None:
        tool = wanted.tool.name
        changed = f"; your hook {wanted.changed_by} changed what the model asked for" * bool(
            wanted.changed_by
        )
        answer = await self._asker.approval(
            ApprovalAsked(
                turn_id=wanted.work.turn_id,
                approval_id=new_id("a"),
                call_id=wanted.work.call_id,
                tool=tool,
                summary=wanted.summary,
                preview=preview,
                why=f"{ask.reason}{changed}",
                key=wanted.key,
                entry=entry_of(facts),
                intent=facts.intent.id if facts.intent else "",
            )
        )
        match answer.decision:
            case "allow" if entry := entry_of(facts):
                self._allow(tool, entry)
            case "reject":
                note = (
                    f" Their reason: {answer.note}"
                    if answer.note
                    else " They gave no reason: ask what is wanted instead."
                )
                raise refused(tool, "user_rejected", f"The user said no.{note}", file_of(facts))
            case "nobody":
                raise ToolRefused(nobody_to_ask(facts, ask).error)
            case "cancelled":
                raise refused(tool, "cancelled", "The user cancelled the turn.", file_of(facts))

    def _allow(self, tool: str, entry: str) -> None:
        """Put the entry on the list, for this turn and from now on."""
        try:
            self._put_on_list(entry)
        except ConfigProblem as problem:
            message = f"The entry could not be kept, so the command did not run: {problem}"
            raise refused(tool, "storage_failed", message) from problem

    async def question(self, wanted: Wanted, question: Question) -> str:
        tool = wanted.tool.name
        answer = await self._asker.question(
            QuestionAsked(
                turn_id=wanted.work.turn_id,
                question_id=new_id("q"),
                call_id=wanted.work.call_id,
                question=question.text,
                options=question.options,
            )
        )
        if answer.by == "nobody":
            message = "Nobody can be asked: go on with what is known, and say what was assumed."
            raise refused(tool, "nobody_to_ask", message)
        if answer.by == "cancelled":
            raise refused(tool, "cancelled", "The user cancelled the turn.")
        return answer.answer
