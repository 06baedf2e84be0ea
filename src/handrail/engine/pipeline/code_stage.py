"""A stage of code. Its effects are tool calls, each with an id that is the same after a restart."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from anyio.lowlevel import checkpoint

from handrail.engine.earlier import earlier_turns
from handrail.engine.pipeline.definition import CallEnd, Change, Outputs
from handrail.protocol.errors import ToolError
from handrail.protocol.events import ToolFinished
from handrail.protocol.values import ToolCall
from handrail.sessions.handle import Session
from handrail.sessions.run_state import RunState, StageCall
from handrail.tools.base import error_json
from handrail.tools.gate import Gate
from handrail.tools.gathering import Tools

DONE = "Done before Handrail was started again; it was not done twice."
UNKNOWN = (
    "Handrail ended while this ran: it may have happened in full, in part or not at all. It is not repeated."
)


class StageWork:
    """What a step of code has at hand."""

    def __init__(
        self,
        session: Session,
        run: RunState,
        outputs: Outputs,
        *,
        gate: Gate,
        tools: Tools,
        turn_id: str,
        room: int,
    ) -> None:
        self.question = run.question
        self.outputs = outputs
        self.issues = tuple(run.issues)
        self.feedback = tuple(run.feedback)
        self.room = room
        self._session = session
        self._gate = gate
        self._tools = tools
        self._turn_id = turn_id
        self._made = 0

    @property
    def earlier(self) -> str:
        """What was said in the last turns before the question, in short."""
        return earlier_turns(self._session)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallEnd:
        """Use a tool, through the gate. A call that was made before a restart is not made again."""
        call = self._call(tool, arguments)
        before = self._session.stage.calls.get(call.id)
        if before is None or not self._ended(call, before):
            await self._gate.run(call, self._turn_id)
        await checkpoint()  # who follows sees this call before the next begins
        return self._end(self._session.stage.calls[call.id])

    async def change_together(self, changes: Sequence[Change]) -> list[CallEnd]:
        """Change files, all or none, by calls of tools that do; what was done before a restart stays so."""
        calls = [self._call(tool, arguments) for tool, arguments in changes]
        before = [known for call in calls if (known := self._session.stage.calls.get(call.id))]
        if any(known.applied for known in before):
            for call in calls:
                if (known := self._session.stage.calls.get(call.id)) is None or known.status is None:
                    self._record(call, "ok", DONE)
        elif not before or any(known.status is None for known in before):
            await self._gate.run_all(calls, self._turn_id)
        await checkpoint()
        return [self._end(self._session.stage.calls[call.id]) for call in calls]

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        """A call with an id that is the same after a restart."""
        self._made += 1
        given = json.dumps([tool, arguments], sort_keys=True, ensure_ascii=False)
        digest = hashlib.sha256(given.encode(errors="replace")).hexdigest()[:12]
        return ToolCall(
            id=f"{self._session.stage.stage_id}.{self._made}.{digest}", name=tool, arguments=dict(arguments)
        )

    def _ended(self, call: ToolCall, before: StageCall) -> bool:
        """Whether the call needs no more doing; what came of one that was cut off is put on record."""
        if before.status in ("ok", "failed", "refused"):
            return True
        if before.applied:
            self._record(call, "ok", DONE)
            return True
        known = self._tools.find(call.name)
        harmless = before.kind == "safe" or (known is not None and known.action == "write")
        # A file is either changed, which the log tells, or not; what a command did nobody knows.
        if not harmless:
            self._record(call, "interrupted", UNKNOWN)
        return not harmless

    def _record(self, call: ToolCall, status: Any, message: str) -> None:
        error = ToolError(tool=call.name, reason="interrupted", message=message) if status != "ok" else None
        self._session.append(
            ToolFinished(
                turn_id=self._turn_id,
                call_id=call.id,
                tool=call.name,
                status=status,
                summary="not repeated",
                content=error_json(error) if error else message,
                error=error,
                apart=True,
            )
        )

    def _end(self, call: StageCall) -> CallEnd:
        (recorded,) = self._session.read_after(call.seq - 1, 1)
        content = recorded.event.content if isinstance(recorded.event, ToolFinished) else ""
        return CallEnd(call.status == "ok", content)
