"""The gate: the one way for a call to become an effect.

arguments -> facts -> decide -> preview -> ask -> facts again -> start, committed -> run -> end, committed
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

from anyio import get_cancelled_exc_class, to_thread

from handrail.policy.decide import decide, nobody_to_ask
from handrail.policy.decision import ALLOW, Allow, Ask, Deny
from handrail.policy.facts import Action, CommandFacts, Facts, PathFacts
from handrail.protocol.errors import ConfigProblem, ToolError, ToolRefused
from handrail.protocol.events import ApprovalAsked, Event, QuestionAsked, TodoCompleted
from handrail.protocol.ids import new_id
from handrail.protocol.record import Record
from handrail.protocol.values import Mode, ToolCall, Value
from handrail.sessions.handle import Session
from handrail.tools.addresses import is_written
from handrail.tools.base import Outcome, Question, Tool, Work, error_json
from handrail.tools.clip import head_and_tail
from handrail.tools.path_facts import path_facts
from handrail.tools.ports import Asker
from handrail.tools.reading_arguments import read_arguments
from handrail.tools.recording import failed, finished, refusal, refusals, refused, started, without
from handrail.tools.said import user_texts
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.unasked import entry_of, unasked
from handrail.workspace.files import Workspace
from handrail.workspace.places import Place

if TYPE_CHECKING:
    from handrail.tools.together import ChangeTogether

CANCELLED_OUTPUT = 3_000


class Wanted(Record):
    """A call that could be read."""

    tool: Tool[Any]
    arguments: Value
    work: Work
    command: CommandFacts | None = None
    confined: bool = False

    @property
    def summary(self) -> str:
        return self.tool.summary(self.arguments, self.work)

    @property
    def key(self) -> str:
        """What an `always` is remembered by: a hash of all of it, so that nothing else has the same."""
        subject = [self.tool.name, self.tool.subject(self.arguments, self.work)]
        return hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()

    @property
    def preview(self) -> str:
        return self.tool.preview(self.arguments, self.work)


class Tools(Protocol):
    """The tools that calls may name."""

    def find(self, name: str) -> Tool[Any] | None: ...

    def names(self, mode: Mode) -> list[str]: ...


class Gate:
    def __init__(
        self,
        session: Session,
        workspace: Workspace,
        toolbox: Tools,
        asker: Asker,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        without_sandbox: bool = False,
        keep_entry: Callable[[str], None] = lambda _entry: None,
        answerable: bool = True,
        shown_characters: int = 16_000,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self._session = session
        self._workspace = workspace
        self._toolbox = toolbox
        self._asker = asker
        self._allowed = tuple(allow)
        self._denied = tuple(deny)
        self._without_sandbox = without_sandbox
        self._keep_entry = keep_entry
        self._answerable = answerable
        self._shown_characters = shown_characters
        self._secrets = secrets

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

        read: list[Wanted] = []
        try:
            for call in calls:
                with refusals(call.name):
                    one = self._read(call, turn_id)
                    _decide(self._facts(one), one.work)
                    read.append(one)
        except ToolRefused as refused:
            self._refuse_all(calls, turn_id, refused.error, at_fault=len(read))
            return
        tool = together([(one.tool, one.arguments, one.work) for one in read])
        try:
            with refusals(tool.name):
                wanted = self._resolved(Wanted(tool, Value(), read[0].work))
                facts = await self._admit(wanted)
                work = wanted.work.changed(confirmed=bool(facts.confirm))
                await self._perform_together(list(zip(calls, read, strict=True)), tool, work, facts)
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
                wanted = await self._with_command(self._read(call, turn_id))
                facts = await self._admit(wanted)
                work = wanted.work.changed(confirmed=bool(facts.confirm), unasked=unasked(facts))
                wanted = wanted.changed(work=work)
                if question := wanted.tool.question(wanted.arguments):
                    answer = await self._question(wanted, question)
                    wanted = wanted.changed(work=wanted.work.changed(answer=answer))
        except ToolRefused as refused:
            self._finish(call, turn_id, refusal(refused.error), seconds=0.0)
            return
        await self._perform(call, wanted, facts)

    def _read(self, call: ToolCall, turn_id: str) -> Wanted:
        tool = self._toolbox.find(call.name)
        if tool is None:
            names = ", ".join(self._toolbox.names(self._session.state.mode))
            message = f"There is no tool {call.name[:80]}. There are: {names}."
            raise refused(call.name, "unknown_tool", message)
        work = Work(
            self._session,
            self._workspace,
            turn_id,
            call.id,
            ExitStack(),
            shown_characters=self._shown_characters,
            secrets=self._secrets,
        )
        return self._resolved(Wanted(tool, read_arguments(call, tool.arguments), work))

    def _resolved(self, wanted: Wanted) -> Wanted:
        """The call with the place that its path leads to now, looked up once for all that follows."""
        about = wanted.tool.about(wanted.arguments)
        place = self._workspace.resolve(about.path) if about.path is not None else None
        others = tuple(self._workspace.resolve(path) for path in about.others)
        return wanted.changed(work=wanted.work.changed(place=place, others=others))

    async def _with_command(self, wanted: Wanted) -> Wanted:
        """The call with what is known of its command, if it has one."""
        command = wanted.tool.about(wanted.arguments).command
        if command is None:
            return wanted
        from handrail.policy.commands.judge import lists_of
        from handrail.tools.command_facts import command_facts

        lists = lists_of(self._allowed, self._denied)
        known = await to_thread.run_sync(command_facts, command, lists, self._workspace)
        confined = self._without_sandbox or await wanted.tool.confined()
        return wanted.changed(command=known, confined=confined)

    # May it run?

    async def _admit(self, wanted: Wanted) -> Facts:
        facts = self._facts(wanted)
        decision = _decide(facts, wanted.work)
        preview = wanted.preview
        if confirm := wanted.tool.confirmation(wanted.arguments, wanted.work):
            facts = facts.changed(confirm=confirm)
            decision = _decide(facts, wanted.work)
        if isinstance(decision, Ask):
            await self._ask(wanted, facts, decision, preview)
            self._check_again(wanted, facts, preview)
        return facts

    def _facts(self, wanted: Wanted) -> Facts:
        tool, about = wanted.tool, wanted.tool.about(wanted.arguments)
        return Facts(
            tool=tool.name,
            action=tool.action,
            mode=self._session.state.mode,
            path=_path_facts(wanted.work, place, tool.action) if (place := wanted.work.place) else None,
            command=wanted.command,
            confined=wanted.confined,
            network=about.network,
            url_from_user=about.url is not None and is_written(about.url, user_texts(self._session)),
            always=wanted.key in self._session.state.always,
            answerable=self._answerable,
        )

    async def _ask(self, wanted: Wanted, facts: Facts, ask: Ask, preview: str) -> None:
        tool = wanted.tool.name
        answer = await self._asker.approval(
            ApprovalAsked(
                turn_id=wanted.work.turn_id,
                approval_id=new_id("a"),
                call_id=wanted.work.call_id,
                tool=tool,
                summary=wanted.summary,
                preview=preview,
                why=ask.reason,
                key=wanted.key,
                entry=entry_of(facts),
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
            self._keep_entry(entry)
        except ConfigProblem as problem:
            message = f"The entry could not be kept, so the command did not run: {problem}"
            raise refused(tool, "storage_failed", message) from problem
        self._allowed += (entry,)

    def _check_again(self, wanted: Wanted, before: Facts, preview: str) -> None:
        """The world may have moved while the user thought: what was approved must be what is done."""
        now = self._resolved(wanted)
        _decide(self._facts(now), now.work)
        moved = (now.work.place, now.work.others) != (wanted.work.place, wanted.work.others)
        if moved or now.preview != preview:
            message = "It changed while the user was asked, so it was not done. Read it again, then repeat."
            raise refused(wanted.tool.name, "stale_file", message, file_of(before))

    async def _question(self, wanted: Wanted, question: Question) -> str:
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

    # Running it

    async def _perform(self, call: ToolCall, wanted: Wanted, facts: Facts) -> None:
        turn_id = wanted.work.turn_id
        self._session.append(started(call, turn_id, facts, wanted.summary))
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
            self._finish(call, turn_id, self._with_todo(wanted, outcome), seconds=time.monotonic() - began)

    async def _perform_together(
        self, calls: Sequence[tuple[ToolCall, Wanted]], tool: "ChangeTogether", work: Work, facts: Facts
    ) -> None:
        """Make the changes of all calls, and commit how each of them ended at once."""
        self._session.append(*(started(call, work.turn_id, facts, one.summary) for call, one in calls))
        began = time.monotonic()
        with work.held:
            try:
                outcomes = await tool.outcomes(work)
            except OSError as error:
                outcomes = [failed(call, error) for call, _ in calls]
            events: list[Event] = []
            for (call, one), outcome in zip(calls, outcomes, strict=True):
                told = without(self._secrets, self._with_todo(one, outcome))
                seconds = time.monotonic() - began
                events += [*told.events, finished(call, work.turn_id, told, seconds=seconds)]
            self._session.append(*events, settle=[call.id for call, _ in calls])

    def _with_todo(self, wanted: Wanted, outcome: Outcome) -> Outcome:
        """The outcome with the todo that its success completes."""
        todo = wanted.tool.about(wanted.arguments).todo
        if not todo or outcome.status != "ok":
            return outcome
        still_open = [item.id for item in self._session.state.todos if not item.done]
        if todo not in still_open:
            note = f"[no open todo has the id {todo[:40]}; open: {', '.join(still_open) or 'none'}]"
            return outcome.changed(content=f"{outcome.content}\n{note}")
        done = TodoCompleted(todo_id=todo, by="command" if wanted.tool.action == "run" else "change")
        return outcome.changed(events=(*outcome.events, done))

    def _cancelled(self, call: ToolCall) -> Outcome:
        error = ToolError(tool=call.name, reason="cancelled", message="Cancelled before it ended.")
        output = head_and_tail(self._session.live.text(call.id, "output"), CANCELLED_OUTPUT)
        content = f"{error_json(error)}\nOutput so far:\n{output}" if output else error_json(error)
        return Outcome("cancelled", content, shown=output, status="cancelled", error=error)

    def _finish(self, call: ToolCall, turn_id: str, outcome: Outcome, *, seconds: float) -> None:
        outcome = without(self._secrets, outcome)
        blobs = [each for each in (outcome.output, *(image.data for image in outcome.images)) if each]
        end = finished(call, turn_id, outcome, seconds=seconds)
        self._session.append(*outcome.events, end, blobs=blobs, settle=[call.id])


def _path_facts(work: Work, place: Place, action: Action) -> PathFacts:
    return path_facts(work.workspace.root, place, to_change=action == "write")


def _decide(facts: Facts, work: Work) -> Allow | Ask:
    """What holds for every path of a call; raises ToolRefused where one of them is denied."""
    others = (facts.changed(path=_path_facts(work, place, facts.action)) for place in work.others)
    said = [decide(facts), *map(decide, others)]
    for decision in said:
        if isinstance(decision, Deny):
            raise ToolRefused(decision.error)
    return next((decision for decision in said if isinstance(decision, Ask)), ALLOW)


def file_of(facts: Facts) -> str:
    return facts.path.path if facts.path else ""
