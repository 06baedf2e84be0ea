"""The stage `code`: a function that a pipeline names. Its effects are tool calls with stable ids."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from handrail.context.mentions import mentioned_names
from handrail.context.token_budget import fragment_cap, input_share
from handrail.engine.context import StageResult, TurnContext
from handrail.engine.pipeline import CallResult, Change, Outputs, Stage, definition_errors
from handrail.engine.turn_end import OUTCOME_UNKNOWN, Ending, unfinished_call
from handrail.engine.user_input import earlier_turns, turn_message
from handrail.policy.intent_rules import in_scope
from handrail.protocol.events import ToolFinished
from handrail.protocol.values import TaskFilter, Todo, ToolCall
from handrail.sessions.projections import PlanState
from handrail.sessions.run_state import RunState, StageCall

if TYPE_CHECKING:
    from handrail.engine.search.search import Found
    from handrail.tasks.task_list import TaskList
    from handrail.verification.workspace_checks import WorkspaceChecks
    from handrail.workspace.scratch_copy.copy import ShownCopy

MAX_CHARACTERS = 60_000  # characters of output that a model can be shown, at most
DONE = "Done before Handrail was restarted; it was not done twice."


async def run(context: TurnContext, stage: Stage, state: RunState, outputs: Outputs) -> StageResult:
    """The output of the function; raises GiveUp where it fails."""
    if reached := context.limit_reached:
        return StageResult(Ending("budget", reached))
    inputs = {name: outputs[name] for name in stage.inputs if name in outputs}
    with definition_errors(f"The stage {stage.name}"):
        output = await context.catalogue.steps[stage.step](CodeContext(context, state, inputs))
    return StageResult(Ending("answered"), output)


class CodeContext:
    """The `StepContext` of a running turn."""

    def __init__(self, context: TurnContext, state: RunState, outputs: Outputs) -> None:
        window = context.main.models[0].capabilities.context_window
        self.question = state.question
        self.outputs = outputs
        self.issues = tuple(state.issues)
        self.feedback = tuple(state.feedback)
        self.chosen, self.said = state.chosen, state.said
        self.key = context.session.stage.stage_id
        self.item = state.item
        self.room = fragment_cap(window, most=MAX_CHARACTERS, share=3)
        self.input_room = input_share(window, inputs=1)
        self.repaired = sum(times for ends in state.repairs.values() for times in ends.values())
        self.workspace = context.workspace
        self._checks = context.checks
        self._tasks = context.tasks
        self._context = context
        self._session = context.session
        self._gate = context.gate
        self._tools = context.tools
        self._turn_id = context.turn.turn_id
        self._made = 0

    @property
    def attached(self) -> str:
        return turn_message(self._session).attached if mentioned_names(self.question) else ""

    @property
    def earlier(self) -> str:
        # A small model takes all that it is shown for what is meant.
        return earlier_turns(self._session, runs=not self._context.strategy.answers_directly)

    @property
    def todos(self) -> Sequence[Todo]:
        return self._session.state.todos

    @property
    def plan(self) -> PlanState | None:
        return self._session.state.plan

    @property
    def checks(self) -> "WorkspaceChecks":
        return self._checks()

    @property
    def tasks(self) -> "TaskList":
        return self._tasks()

    @property
    def where(self) -> TaskFilter | None:
        return self._session.state.routes.where

    def other_intents(self, path: str) -> Sequence[str]:
        listed, active = self._context.intents.now(), self._session.state.intent
        mine = listed.find(active) if listed and active else None
        if listed is None or mine is None or in_scope(path, mine.scope):
            return ()
        return [each.id for each in listed.selectable if each.id != active and in_scope(path, each.scope)]

    async def search(
        self, targets: Sequence[str], start: Mapping[str, str], about: Collection[str]
    ) -> "Found":
        from handrail.engine.search.search import search_for_tests

        return await search_for_tests(self._context, self.question, targets, start, about)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        call = self._call(tool, arguments)
        before = self._session.stage.calls.get(call.id)
        if before is None or not self._ended(call, before):
            await self._gate.run(call, self._turn_id)
        await checkpoint()  # followers see this call before the next one starts
        return self._end(self._session.stage.calls[call.id])

    async def run_in_copy(self, copy: "ShownCopy", command: str, *, network: bool) -> CallResult:
        from handrail.tools.commands.run_in_copy import RunInCopy

        tool = self._tools.find(RunInCopy.name)
        if not isinstance(tool, RunInCopy):
            raise AssertionError("every toolbox can run commands of a plan in a copy")
        call = self._call(tool.name, {"command": command, "network": network})
        # The copy of a process that was killed is gone, and what its commands did with it.
        calls = self._session.stage.calls
        earlier = [call_id for call_id in calls if call_id.startswith(call.id)]
        for call_id in earlier:
            if calls[call_id].status is None:
                message = "It ran in a copy that is gone; it runs again."
                before = replace(call, id=call_id)
                self._session.append(
                    unfinished_call(self._turn_id, before, "interrupted", message, "runs again", apart=True)
                )
        call = replace(call, id=f"{call.id}.{len(earlier)}")
        with tool.showing(copy):
            await self._gate.run(call, self._turn_id)
        await checkpoint()
        return self._end(self._session.stage.calls[call.id])

    async def change_together(self, changes: Sequence[Change]) -> list[CallResult]:
        calls = [self._call(tool, arguments) for tool, arguments in changes]
        before = [known for call in calls if (known := self._session.stage.calls.get(call.id))]
        if any(known.applied for known in before):
            for call in calls:
                if (known := self._session.stage.calls.get(call.id)) is None or known.status is None:
                    self._record_done(call)
        elif not before or any(known.status is None for known in before):
            await self._gate.run_all(calls, self._turn_id)
        await checkpoint()
        return [self._end(self._session.stage.calls[call.id]) for call in calls]

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        """A call with an id that is the same after a restart."""
        self._made += 1
        data = json.dumps([tool, arguments], sort_keys=True, ensure_ascii=False).encode(errors="replace")
        call_id = f"{self._session.stage.stage_id}.{self._made}.{hashlib.sha256(data).hexdigest()[:12]}"
        return ToolCall(id=call_id, name=tool, arguments=dict(arguments))

    def _ended(self, call: ToolCall, before: StageCall) -> bool:
        """Whether the call need not run again; the outcome of an interrupted one is recorded."""
        if before.status in ("ok", "failed", "refused"):
            return True
        if before.applied:
            self._record_done(call)
            return True
        known = self._tools.find(call.name)
        repeatable = before.kind == "safe" or (
            known is not None and (known.action == "write" or known.repeatable)
        )
        # The log knows whether a file was changed; what a command did is unknown.
        if not repeatable:
            message = f"{OUTCOME_UNKNOWN} It is not repeated."
            self._session.append(
                unfinished_call(self._turn_id, call, "interrupted", message, "not repeated", apart=True)
            )
        return not repeatable

    def _record_done(self, call: ToolCall) -> None:
        self._session.append(
            ToolFinished(
                turn_id=self._turn_id,
                call_id=call.id,
                tool=call.name,
                status="ok",
                summary="not repeated",
                content=DONE,
                apart=True,
            )
        )

    def _end(self, call: StageCall) -> CallResult:
        (recorded,) = self._session.read_after(call.seq - 1, 1)
        content = recorded.event.content if isinstance(recorded.event, ToolFinished) else ""
        return CallResult(call.status == "ok", content)
