"""The gate: the only way for a tool call to run. The order of its steps is written here.

A call, or several file changes in a row, go through these steps together:

 1. read      find the tool, check the arguments, parse the command
 2. decide    resolve the paths, gather the facts; policy allows, asks or denies
 3. prepare   compute what would change, once: edits, preview, what the user has to confirm
 4. hooks     the user's `before_tool` hooks; one that changes arguments sends its call back to 1
 5. ask       the user, where policy asks
 6. check     after each wait in 4 and 5: decide again, and compare the files with what was prepared
 7. start     commit `tool_started`
 8. run       apply what was prepared; a file change that waited for diagnostics is decided once more, and
              `changes` compares the files under its lock
 9. end       commit `tool_finished`, with the events that belong to it
10. hooks     the user's `after_tool` hooks

A call is prepared again only if a hook changed its arguments, or if its files changed while a hook ran. A
change while the user is asked makes the call stale, and it is refused.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

from anyio import get_cancelled_exc_class
from msgspec.structs import replace

from handrail.policy.call_facts import Allow, Ask, Facts, tool_kind
from handrail.protocol.errors import ToolRefused
from handrail.protocol.events import Event, TodoCompleted, ToolFinished, ToolStarted
from handrail.protocol.values import CommandEntry, ToolCall, Value
from handrail.sessions.session import Session
from handrail.tools.files.edit import FileChangeTool
from handrail.tools.files.in_editor import unsaved_note
from handrail.tools.gate.approval import Approval, Asker, auto_approval
from handrail.tools.gate.facts import FactGatherer, PendingCall, ToolLookup, decide_call, path_of
from handrail.tools.secrets import NO_SECRETS, Secrets
from handrail.tools.tool import (
    CallTarget,
    Outcome,
    Prepared,
    Question,
    redact,
    refusals_of,
    refuse_path_problems,
    tool_refused,
    with_intent_id,
)
from handrail.workspace.editor import look
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

if TYPE_CHECKING:
    from handrail.tools.gate.hooks import Hooks

STALE = "The file changed while the user was asked, so nothing was done. Read it again, then repeat."


class CallDecision(NamedTuple):
    """Calls that no rule denies."""

    calls: tuple[PendingCall, ...]
    joint: PendingCall  # what is decided, asked about and run: the call, or the batch of all calls
    facts: Facts
    decision: Allow | Ask

    @property
    def prepared(self) -> Prepared:
        return self.joint.work.prepared

    def with_prepared(self, prepared: Prepared) -> "CallDecision":
        return self._replace(joint=replace(self.joint, work=replace(self.joint.work, prepared=prepared)))


class Gate:
    def __init__(
        self,
        session: Session,
        workspace: Workspace,
        toolbox: ToolLookup,
        asker: Asker,
        *,
        allow: Sequence[CommandEntry] = (),
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
        self._gatherer = FactGatherer(
            session,
            workspace,
            toolbox,
            intents or IntentFile(workspace),
            allowed=tuple(allow),
            denied=tuple(deny),
            without_sandbox=without_sandbox,
            answerable=answerable,
            shown_characters=shown_characters,
            secrets=secrets,
        )
        self._keep_entry = keep_entry
        self._approval = Approval(asker, self._allow)

    def _allow(self, entry: str) -> None:
        self._keep_entry(entry)
        self._gatherer = replace(self._gatherer, allowed=(*self._gatherer.allowed, entry))

    async def run_all(self, calls: Sequence[ToolCall], turn_id: str) -> None:
        """Run an answer's tool calls; consecutive file changes form one change set."""
        batch: list[ToolCall] = []
        for call in calls:
            if isinstance(self._toolbox.find(call.name), FileChangeTool):
                batch.append(call)
                continue
            await self._run(batch, turn_id)
            batch = []
            await self._run([call], turn_id)
        await self._run(batch, turn_id)

    async def run(self, call: ToolCall, turn_id: str) -> None:
        """Run one call and record how it ended: done, refused, failed or cancelled."""
        await self._run([call], turn_id)

    async def _run(self, calls: Sequence[ToolCall], turn_id: str) -> None:
        if not calls:
            return
        try:
            admitted = await self._admit(calls, turn_id)
        except ToolRefused as problem:
            self._finish(calls, turn_id, refusals_of(calls, problem), seconds=0.0)
            return
        ends = await self._perform(admitted)
        if self._hooks:
            for one, end in zip(admitted.calls, ends, strict=True):
                await self._hooks.after_tool(one.call, end)

    # May it run?

    async def _admit(self, calls: Sequence[ToolCall], turn_id: str) -> CallDecision:
        """The calls, allowed to run; raises ToolRefused."""
        read = []
        for number, call in enumerate(calls):
            with refuse_path_problems(call.name, at_fault=number):
                read.append(await self._gatherer.read(call, turn_id))
        judged = self._prepare(await self._decide_and_look(read))
        if self._hooks:
            judged = await self._ask_hooks(self._hooks, judged)
        joint, facts, decision = judged.joint, judged.facts, judged.decision
        if isinstance(decision, Ask):
            await self._approval.ask(joint, facts, decision)
            await self._decide_and_look(judged.calls)
            if self._check(judged).prepared is not judged.prepared:
                raise tool_refused(joint.tool.name, "stale_file", STALE, path_of(facts))
        auto = auto_approval(facts)
        opens = facts.sandbox.opens if facts.mode == "sandbox" and facts.sandbox else None
        work = replace(
            joint.work,
            auto_approval=auto,
            opened=() if auto and opens else opens,
            scope=facts.scope,
            decide_again=partial(self._verdict, joint),
            ask=self._asks(joint),
        )
        if question := joint.tool.question(joint.arguments):
            work = replace(work, answer=await self._approval.question(joint, question))
        return judged._replace(joint=replace(joint, work=work))

    def _asks(self, joint: PendingCall) -> Callable[[Question], Awaitable[str]]:
        """A function that asks the user while the call runs."""
        numbers = count(1)
        return lambda question: self._approval.question(joint, question, next(numbers))

    def _decide(self, calls: Sequence[PendingCall]) -> CallDecision:
        """The decision about the calls now; raises ToolRefused if one is denied."""
        placed = []
        for number, one in enumerate(calls):
            with refuse_path_problems(one.tool.name, at_fault=number):
                placed.append(self._gatherer.with_resolved_paths(one))
        moved = frozenset(path for one in placed for path in one.work.moved)
        placed = [replace(one, work=replace(one.work, moved=moved)) for one in placed]
        for number, one in enumerate(placed if len(placed) > 1 else ()):
            with refuse_path_problems(one.tool.name, at_fault=number):
                self._verdict(one)  # so that the refusal is about this call
        joint = placed[0] if len(placed) == 1 else _batch(placed)
        return CallDecision(tuple(placed), joint, *self._verdict(joint))

    async def _decide_and_look(self, calls: Sequence[PendingCall]) -> CallDecision:
        """The same; of files to be changed, what an editor has unsaved is known afterwards."""
        judged = self._decide(calls)
        if judged.joint.work.workspace.editor and judged.joint.tool.action == "write":
            with refuse_path_problems(judged.joint.tool.name):
                await look(judged.joint.work.workspace, self._session.id, judged.joint.places)
        return judged

    def _verdict(self, one: PendingCall) -> tuple[Facts, Allow | Ask]:
        facts = self._gatherer.facts(one)
        return facts, decide_call(facts, one.work)

    def _prepare(self, judged: CallDecision, before: CallDecision | None = None) -> CallDecision:
        """The calls with what they would change; reuses what was prepared `before` if it is still current."""
        joint = judged.joint
        with refuse_path_problems(joint.tool.name):
            if (
                before
                and joint.places == before.joint.places
                and joint.tool.is_current(joint.arguments, replace(joint.work, prepared=before.prepared))
            ):
                judged = judged.with_prepared(before.prepared)
            else:
                judged = judged.with_prepared(joint.tool.prepare(joint.arguments, joint.work))
        if confirm := judged.prepared.confirm:
            facts = replace(judged.facts, confirm=confirm)
            judged = judged._replace(facts=facts, decision=decide_call(facts, joint.work))
        return judged

    def _check(self, before: CallDecision) -> CallDecision:
        """The calls decided again after a wait, and prepared again if anything has changed."""
        return self._prepare(self._decide(before.calls), before)

    async def _ask_hooks(self, hooks: "Hooks", judged: CallDecision) -> CallDecision:
        """The calls as the user's hooks leave them; raises ToolRefused if one denies a call."""
        from handrail.tools.gate.hooks import blame_hook

        for number, first in enumerate(judged.calls):
            for hook in hooks.before_tool(first.tool.name):
                call, turn_id = judged.calls[number].call, first.work.turn_id
                with refuse_path_problems(call.name, at_fault=number):
                    changed = await hooks.ask_before(hook, call, turn_id)
                if changed is None:
                    judged = self._check(judged)
                    continue
                call = replace(call, arguments=changed.arguments)
                with blame_hook(changed.hook):
                    with refuse_path_problems(call.name, at_fault=number):
                        read = await self._gatherer.read(call, turn_id)
                    calls = list(judged.calls)
                    calls[number] = replace(read, changed_by_hook=changed.hook)
                    judged = self._prepare(await self._decide_and_look(calls))
        return judged

    # Running it

    async def _perform(self, admitted: CallDecision) -> list[ToolFinished]:
        """Commit the calls' starts, run them, and commit their ends."""
        joint, turn_id = admitted.joint, admitted.joint.work.turn_id
        calls = [one.call for one in admitted.calls]
        starts = (
            ToolStarted(
                turn_id=turn_id,
                call_id=one.call.id,
                tool=one.call.name,
                arguments=one.call.arguments,
                kind=tool_kind(admitted.facts),
                summary=one.summary,
                stage_id=self._session.state.stage_id,
            )
            for one in admitted.calls
        )
        self._session.append(*starts)
        began = time.monotonic()
        with joint.work.cleanup:
            try:
                note = await unsaved_note(joint.work) if joint.tool.sees_disk else ""
                with refuse_path_problems(joint.tool.name):
                    outcome = await joint.tool.run(joint.arguments, joint.work)
                if note:
                    outcome = replace(outcome, content=f"{outcome.content}\n{note}")
                outcomes = [outcome, *outcome.others]
            except get_cancelled_exc_class():
                ended = [joint.tool.cancelled(call, joint.work) for call in calls]
                if outcomes := [each for each in ended if each is not None]:
                    self._finish(calls, turn_id, outcomes, seconds=time.monotonic() - began)
                raise
            except ToolRefused as problem:
                outcomes = refusals_of(calls, problem)
            except OSError as error:
                why = f"failed: {error.strerror or error}."
                messages = [f"{call.name} {why}" for call in calls]
                outcomes = [Outcome("failed", text, shown=text, status="failed") for text in messages]
            completed: set[str] = set()
            outcomes = [
                self._with_notes(*each, completed) for each in zip(admitted.calls, outcomes, strict=True)
            ]
            return self._finish(calls, turn_id, outcomes, seconds=time.monotonic() - began)

    def _with_notes(self, one: PendingCall, outcome: Outcome, completed: set[str]) -> Outcome:
        """The outcome with the todos that it completes, and a note if a hook changed the call.

        `completed` has those that another call of the batch completes.
        """
        if one.changed_by_hook:
            from handrail.tools.gate.hooks import change_note

            outcome = replace(outcome, content=f"{outcome.content}\n{change_note(one)}")
        if outcome.status != "ok":
            return outcome
        done, notes = self._todos_of(one.tool.target(one.arguments))
        by: Literal["command", "change"] = "command" if one.tool.action == "run" else "change"
        events = [TodoCompleted(todo_id=todo, by=by) for todo in done if todo not in completed]
        completed.update(done)
        content = "\n".join([outcome.content, *notes])
        return replace(outcome, events=(*outcome.events, *events), content=content)

    def _todos_of(self, target: CallTarget) -> tuple[list[str], list[str]]:
        """The todos that a successful call completes, and notes on those that it names in vain."""
        still_open = {todo.id: todo for todo in self._session.state.todos if not todo.done}
        if target.background:
            return [], ["[a command completes no todo before it has ended]"] if target.todos else []
        done = [todo.id for todo in still_open.values() if todo.command and todo.command == target.command]
        notes = []
        for name in target.todos:
            if (todo := still_open.get(name)) is None:
                ids = ", ".join(still_open) or "none"
                notes.append(f"[no open todo has the id {name[:40]}; open todos: {ids}]")
            elif not todo.command:
                done.append(name)
            elif todo.command != target.command:
                notes.append(f"[{name} is completed by this command alone: {todo.command}]")
        return list(dict.fromkeys(done)), notes

    def _finish(
        self, calls: Sequence[ToolCall], turn_id: str, outcomes: Sequence[Outcome], *, seconds: float
    ) -> list[ToolFinished]:
        """Commit how the calls ended, without secrets; a refusal names the active intent."""
        state = self._session.state
        events: list[Event] = []
        blobs: list[bytes] = []
        ends: list[ToolFinished] = []
        for call, outcome in zip(calls, outcomes, strict=True):
            redacted = redact(self._secrets, with_intent_id(outcome, state.intent))
            end = ToolFinished(
                turn_id=turn_id,
                call_id=call.id,
                tool=call.name,
                status=redacted.status,
                summary=redacted.summary,
                content=redacted.content,
                shown=redacted.shown,
                error=redacted.error,
                output=hashlib.sha256(redacted.output).hexdigest() if redacted.output else "",
                files=redacted.files,
                images=tuple(each.image for each in redacted.images),
                seconds=seconds,
                apart=state.is_apart,
            )
            ends.append(end)
            events += [*redacted.events, end]
            blobs += [data for data in (redacted.output, *(image.data for image in redacted.images)) if data]
        self._session.append(*events, blobs=blobs, settle=[call.id for call in calls])
        return ends


def _batch(calls: Sequence[PendingCall]) -> PendingCall:
    """Several file changes as one call."""
    from handrail.tools.files.edit_batch import BatchMember, EditBatch

    members = [
        BatchMember(one.tool, one.arguments, one.work)
        for one in calls
        if isinstance(one.tool, FileChangeTool)
    ]
    tool = EditBatch(members)
    place, *others = tool.places()
    return PendingCall(
        calls[0].call,
        tool,
        Value(),
        replace(calls[0].work, place=place, others=tuple(others)),
        changed_by_hook=", ".join(dict.fromkeys(one.changed_by_hook for one in calls if one.changed_by_hook)),
    )
