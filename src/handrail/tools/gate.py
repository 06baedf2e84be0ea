"""The gate: the one way for a call to become an effect.

arguments -> facts -> decide -> preview -> hooks -> ask -> facts again -> start, committed -> run
-> end, committed -> hooks

A hook that changes the arguments sends the call back to the beginning; each hook is asked once.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from anyio import get_cancelled_exc_class

from handrail.policy.decision import Allow, Ask
from handrail.policy.facts import Facts
from handrail.protocol.errors import ToolError, ToolRefused
from handrail.protocol.events import Event, TodoCompleted, ToolFinished
from handrail.protocol.values import Entry, ToolCall, Value
from handrail.sessions.handle import Session
from handrail.tools.approving import Approving
from handrail.tools.base import Outcome, Work, error_json
from handrail.tools.clip import head_and_tail
from handrail.tools.gathering import Gathering, Tools, Wanted, decided, file_of
from handrail.tools.ports import Asker
from handrail.tools.recording import (
    failed,
    finished,
    refusal,
    refusals,
    refused,
    started,
    with_intent,
    without,
)
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.unasked import unasked
from handrail.workspace.files import Workspace
from handrail.workspace.intents.intent_file import IntentFile

if TYPE_CHECKING:
    from handrail.tools.hooks import Hooks
    from handrail.tools.together import ChangeTogether

CANCELLED_OUTPUT = 3_000


class Judged(NamedTuple):
    """A call that no rule denies."""

    facts: Facts
    decision: Allow | Ask
    preview: str


class Gate:
    def __init__(
        self,
        session: Session,
        workspace: Workspace,
        toolbox: Tools,
        asker: Asker,
        *,
        allow: Sequence[Entry] = (),
        deny: Sequence[str] = (),
        without_sandbox: bool = False,
        keep_entry: Callable[[str], None] = lambda _entry: None,
        answerable: bool = True,
        shown_characters: int = 16_000,
        secrets: Secrets = NO_SECRETS,
        hooks: "Hooks | None" = None,
        intents: IntentFile | None = None,
    ) -> None:
        self._session = session
        self._toolbox = toolbox
        self._secrets = secrets
        self._hooks = hooks
        self._gathering = Gathering(
            session,
            workspace,
            toolbox,
            allow=allow,
            deny=deny,
            without_sandbox=without_sandbox,
            answerable=answerable,
            shown_characters=shown_characters,
            secrets=secrets,
            intents=intents,
        )
        self._keep_entry = keep_entry
        self._approving = Approving(asker, self._allow)

    def _allow(self, entry: str) -> None:
        self._keep_entry(entry)
        self._gathering.allow(entry)

    async def run_all(self, calls: Sequence[ToolCall], turn_id: str) -> None:
        """Bring the calls of an answer to their ends; changes of files that follow one another as one."""
        if len(calls) <= 1:
            for call in calls:
                await self.run(call, turn_id)
            return
        from handrail.tools.together import groups

        for group in groups(calls, self._toolbox):
            if len(group) == 1:
                await self.run(group[0], turn_id)
            else:
                await self._run_together(group, turn_id)

    async def _run_together(self, calls: Sequence[ToolCall], turn_id: str) -> None:
        """All of the calls or none; what refuses one refuses the others."""
        from handrail.tools.together import together

        read: list[tuple[ToolCall, Wanted]] = []
        try:
            for call in calls:
                with refusals(call.name):
                    one = self._gathering.read(call, turn_id)
                    self._decided(one)
                    read.append(await self._past_hooks(call, one, self._decided))
        except ToolRefused as refused:
            self._refuse_all(calls, turn_id, refused.error, at_fault=len(read))
            return
        tool = together([(one.tool, one.arguments, one.work) for _, one in read])
        changed_by = ", ".join(dict.fromkeys(one.changed_by for _, one in read if one.changed_by))
        try:
            with refusals(tool.name):
                joint = Wanted(tool, Value(), read[0][1].work, changed_by=changed_by)
                wanted = self._gathering.resolved(joint)
                facts = await self._admit(wanted)
                work = wanted.work.changed(confirmed=bool(facts.confirm))
                await self._perform_together(read, tool, work, facts)
        except ToolRefused as refused:
            self._refuse_all(calls, turn_id, refused.error, at_fault=tool.at_fault)

    def _refuse_all(
        self, calls: Sequence[ToolCall], turn_id: str, error: ToolError, *, at_fault: int | None
    ) -> None:
        """Tell each call why it was not done: its own fault, another's, or what holds for all of them."""
        from handrail.tools.together import because_of

        for number, call in enumerate(calls):
            own = at_fault is None or number == at_fault
            fault = error.model_copy(update={"tool": calls[at_fault or 0].name})
            told = error.model_copy(update={"tool": call.name}) if own else because_of(fault, call)
            self._finish(call, turn_id, refusal(told), seconds=0.0)

    async def run(self, call: ToolCall, turn_id: str) -> None:
        """Bring a call to its end in the log: done, refused, failed or cancelled."""
        try:
            with refusals(call.name):
                wanted = await self._gathering.with_command(self._gathering.read(call, turn_id))
                call, wanted = await self._past_hooks(call, wanted, self._judged)
                facts = await self._admit(wanted)
                work = wanted.work.changed(
                    confirmed=bool(facts.confirm), unasked=unasked(facts), scope=facts.scope
                )
                wanted = wanted.changed(work=work)
                if question := wanted.tool.question(wanted.arguments):
                    answer = await self._approving.question(wanted, question)
                    wanted = wanted.changed(work=wanted.work.changed(answer=answer))
        except ToolRefused as refused:
            self._finish(call, turn_id, refusal(refused.error), seconds=0.0)
            return
        ended = await self._perform(call, wanted, facts)
        if self._hooks:
            await self._hooks.after_tool(call, ended)

    # May it run?

    async def _admit(self, wanted: Wanted) -> Facts:
        facts, decision, preview = self._judged(wanted)
        if isinstance(decision, Ask):
            await self._approving.ask(wanted, facts, decision, preview)
            self._check_again(wanted, facts, preview)
        return facts

    def _judged(self, wanted: Wanted) -> Judged:
        """What the rules say to a call that could be done as it is; raises ToolRefused or PathProblem."""
        facts = self._gathering.facts(wanted)
        decision = decided(facts, wanted.work)
        preview = wanted.preview
        if confirm := wanted.tool.confirmation(wanted.arguments, wanted.work):
            facts = facts.changed(confirm=confirm)
            decision = decided(facts, wanted.work)
        return Judged(facts, decision, preview)

    def _decided(self, wanted: Wanted) -> Allow | Ask:
        """What the rules say to a call whose change is looked at together with those of others."""
        return decided(self._gathering.facts(wanted), wanted.work)

    async def _past_hooks(
        self, call: ToolCall, wanted: Wanted, judge: Callable[[Wanted], object]
    ) -> tuple[ToolCall, Wanted]:
        """The call as the user's hooks leave it; raises ToolRefused where one denies it."""
        if self._hooks is None:
            return call, wanted

        async def read(changed: ToolCall) -> Wanted:
            return await self._gathering.with_command(self._gathering.read(changed, wanted.work.turn_id))

        call, wanted = await self._hooks.before_tool(call, wanted, read, judge)
        return call, self._gathering.resolved(wanted)  # the world may have moved while they ran

    def _check_again(self, wanted: Wanted, before: Facts, preview: str) -> None:
        """The world may have moved while the user thought: what was approved must be what is done."""
        now = self._gathering.resolved(wanted)
        decided(self._gathering.facts(now), now.work)
        moved = (now.work.place, now.work.others) != (wanted.work.place, wanted.work.others)
        if moved or now.preview != preview:
            message = "It changed while the user was asked, so it was not done. Read it again, then repeat."
            raise refused(wanted.tool.name, "stale_file", message, file_of(before))

    # Running it

    async def _perform(self, call: ToolCall, wanted: Wanted, facts: Facts) -> ToolFinished:
        turn_id = wanted.work.turn_id
        stage_id = self._session.state.stage_id
        self._session.append(started(call, turn_id, facts, wanted.summary, stage_id=stage_id))
        began = time.monotonic()
        with wanted.work.held:
            try:
                with refusals(call.name):
                    outcome = await wanted.tool.run(wanted.arguments, wanted.work)
            except get_cancelled_exc_class():
                self._finish(call, turn_id, self._cancelled(call), seconds=time.monotonic() - began)
                raise
            except ToolRefused as refused:
                outcome = refusal(refused.error)
            except OSError as error:
                outcome = failed(call, error)
            outcome = self._with_notes(call, wanted, outcome)
            return self._finish(call, turn_id, outcome, seconds=time.monotonic() - began)

    async def _perform_together(
        self, calls: Sequence[tuple[ToolCall, Wanted]], tool: "ChangeTogether", work: Work, facts: Facts
    ) -> None:
        """Make the changes of all calls, and commit how each of them ended at once."""
        stage_id = self._session.state.stage_id
        self._session.append(
            *(started(call, work.turn_id, facts, one.summary, stage_id=stage_id) for call, one in calls)
        )
        began = time.monotonic()
        with work.held:
            try:
                outcomes = await tool.outcomes(work)
            except OSError as error:
                outcomes = [failed(call, error) for call, _ in calls]
            events: list[Event] = []
            ends: list[ToolFinished] = []
            for (call, one), outcome in zip(calls, outcomes, strict=True):
                told = self._told(self._with_notes(call, one, outcome))
                seconds = time.monotonic() - began
                apart = self._session.state.is_apart
                ends.append(finished(call, work.turn_id, told, seconds=seconds, apart=apart))
                events += [*told.events, ends[-1]]
            self._session.append(*events, settle=[call.id for call, _ in calls])
        if self._hooks:
            for (call, _), end in zip(calls, ends, strict=True):
                await self._hooks.after_tool(call, end)

    def _with_notes(self, call: ToolCall, wanted: Wanted, outcome: Outcome) -> Outcome:
        """The outcome with the todos that its success completes, and what a hook made of the call."""
        if wanted.changed_by:
            from handrail.tools.hooks import change_told

            outcome = outcome.changed(content=f"{outcome.content}\n{change_told(wanted, call)}")
        still_open = [item.id for item in self._session.state.todos if not item.done]
        for todo in wanted.tool.about(wanted.arguments).todos if outcome.status == "ok" else ():
            if todo in still_open:
                done = TodoCompleted(todo_id=todo, by="command" if wanted.tool.action == "run" else "change")
                outcome = outcome.changed(events=(*outcome.events, done))
            else:
                note = f"[no open todo has the id {todo[:40]}; open: {', '.join(still_open) or 'none'}]"
                outcome = outcome.changed(content=f"{outcome.content}\n{note}")
        return outcome

    def _cancelled(self, call: ToolCall) -> Outcome:
        error = ToolError(tool=call.name, reason="cancelled", message="Cancelled before it ended.")
        output = head_and_tail(self._session.live.text(call.id, "output"), CANCELLED_OUTPUT)
        content = f"{error_json(error)}\nOutput so far:\n{output}" if output else error_json(error)
        return Outcome("cancelled", content, shown=output, status="cancelled", error=error)

    def _told(self, outcome: Outcome) -> Outcome:
        """The outcome as it may be stored: without secrets, a refusal with the intent that was active."""
        return without(self._secrets, with_intent(outcome, self._session.state.intent))

    def _finish(self, call: ToolCall, turn_id: str, outcome: Outcome, *, seconds: float) -> ToolFinished:
        outcome = self._told(outcome)
        blobs = [each for each in (outcome.output, *(image.data for image in outcome.images)) if each]
        end = finished(call, turn_id, outcome, seconds=seconds, apart=self._session.state.is_apart)
        self._session.append(*outcome.events, end, blobs=blobs, settle=[call.id])
        return end
