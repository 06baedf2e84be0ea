"""Ask the user to approve a call, and act on the answer."""

from collections.abc import Callable
from typing import Protocol

from handrail.policy.call_facts import ALLOW, Ask, Facts
from handrail.policy.decide import decide, deny_unanswerable
from handrail.protocol.errors import ConfigProblem, ToolRefused
from handrail.protocol.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked
from handrail.protocol.ids import new_id
from handrail.tools.gate.facts import PendingCall, path_of
from handrail.tools.tool import AutoApproval, Question, tool_refused


class Asker(Protocol):
    """Asks the user and waits; records the question and the answer."""

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered: ...

    async def question(self, asked: QuestionAsked) -> QuestionAnswered: ...


class Approval:
    """Asks the user about calls; raises ToolRefused if the answer is no."""

    def __init__(self, asker: Asker, allow: Callable[[str], None]) -> None:
        """`allow` adds an entry to the list of allowed commands."""
        self._asker = asker
        self._put_on_list = allow

    async def ask(self, pending: PendingCall, facts: Facts, ask: Ask) -> None:
        tool = pending.tool.name
        hook = pending.changed_by_hook
        changed = f"; your hook {hook} changed what the model asked for" if hook else ""
        answer = await self._asker.approval(
            ApprovalAsked(
                turn_id=pending.work.turn_id,
                approval_id=new_id("a"),
                call_id=pending.work.call_id,
                tool=tool,
                summary=pending.summary,
                preview=pending.work.prepared.preview,
                why=f"{ask.reason}{changed}",
                key=pending.key,
                entry=allowlist_entry(facts),
                intent=facts.intent.id if facts.intent else "",
            )
        )
        match answer.decision:
            case "allow" if entry := allowlist_entry(facts):
                try:
                    self._put_on_list(entry)
                except ConfigProblem as problem:
                    message = f"The entry could not be saved, so the command did not run: {problem}"
                    raise tool_refused(tool, "storage_failed", message) from problem
            case "reject":
                no_reason = "They gave no reason. Ask what they want instead."
                note = f"Their reason: {answer.note}" if answer.note else no_reason
                raise tool_refused(tool, "user_rejected", f"The user said no. {note}", path_of(facts))
            case "nobody":
                raise ToolRefused(deny_unanswerable(facts, ask).error)
            case "cancelled":
                raise tool_refused(tool, "cancelled", "The user cancelled the turn.", path_of(facts))

    async def question(self, pending: PendingCall, question: Question, number: int = 0) -> str:
        """The user's answer to the tool's question; those that are asked while the call runs are numbered."""
        tool = pending.tool.name
        answer = await self._asker.question(
            QuestionAsked(
                turn_id=pending.work.turn_id,
                question_id=new_id("q"),
                call_id=f"{pending.work.call_id}#{number}" if number else pending.work.call_id,
                question=question.text,
                options=question.options,
                secret=question.secret,
            )
        )
        if answer.by == "nobody":
            message = "Nobody can be asked. Continue with what you know, and say what you assumed."
            raise tool_refused(tool, "nobody_to_ask", message)
        if answer.by == "cancelled":
            raise tool_refused(tool, "cancelled", "The user cancelled the turn.")
        return answer.answer


def auto_approval(facts: Facts) -> AutoApproval | None:
    """How a command runs that the rules allowed without asking; None if the user was asked."""
    if facts.command is None or facts.always or decide(facts) != ALLOW:
        return None
    judged = facts.command.judged
    if facts.mode == "sandbox":
        # As the model wrote it: the sandbox confines it, not the list.
        network = judged.network and judged.named
        return AutoApproval(judged.text, network=network, git=False, code=True, reads_only=False, named=False)
    return AutoApproval(
        judged.runs,
        network=judged.network,
        git=judged.git,
        code=judged.runs_code,
        reads_only=judged.reads_only,
        named=judged.named,
        writes_git=judged.writes_git,
    )


def allowlist_entry(facts: Facts) -> str:
    """The list entry that would allow the command; empty if no entry can."""
    return facts.command.judged.entry if facts.command and facts.mode == "auto" and not facts.network else ""
