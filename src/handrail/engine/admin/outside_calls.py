"""Tool calls of an agent that is not ours: each passes the gate, in a session of its own without turns."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
from msgspec import convert

from handrail import __version__
from handrail.config.settings import Hook
from handrail.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ChangePrepared,
    QuestionAnswered,
    QuestionAsked,
    SessionLabelled,
    SessionRenamed,
    SessionStarted,
    ToolFinished,
)
from handrail.protocol.ids import new_id
from handrail.protocol.values import FileChange, Mode, ToolCall
from handrail.sessions.session import Session, event_from_row
from handrail.storage.event_log import Log
from handrail.tools.files.edit_batch import EditFiles
from handrail.tools.files.read import Read
from handrail.tools.gate.gate import Gate
from handrail.tools.intent_tools import SelectIntent
from handrail.tools.secrets import Secrets
from handrail.tools.tool import Tool
from handrail.workspace.files import Workspace
from handrail.workspace.intents_file import IntentFile

Approve = Callable[[ApprovalAsked], Awaitable[bool]]
"""Asks the user; True where they said yes. What it raises ends the call, and nothing is recorded."""


class EndedCall(NamedTuple):
    finished: ToolFinished
    changed: tuple[FileChange, ...] = ()


class OutsideTools:
    """The tools that another agent can call through the gate."""

    def __init__(self, intents: IntentFile) -> None:
        tools: list[Tool[Any]] = [Read(), EditFiles(), SelectIntent(intents)]
        self._tools = {tool.name: tool for tool in tools}

    def find(self, name: str) -> Tool[Any] | None:
        return self._tools.get(name)

    def names(self, mode: Mode) -> list[str]:
        return list(self._tools)


class OutsideAsker(NamedTuple):
    """Asks through a function, and records question and answer once there is one."""

    session: Session
    approve: Approve | None

    async def approval(self, asked: ApprovalAsked) -> ApprovalAnswered:
        decision = "nobody" if self.approve is None else "once" if await self.approve(asked) else "reject"
        answered = convert({"approval_id": asked.approval_id, "decision": decision}, ApprovalAnswered)
        self.session.append(asked, answered)
        return answered

    async def question(self, asked: QuestionAsked) -> QuestionAnswered:
        return QuestionAnswered(question_id=asked.question_id, answer="", by="nobody")


class OutsideCalls:
    """One agent's calls, one after the other; its session is held only while a call runs."""

    def __init__(
        self,
        log: Log,
        workspace: Workspace,
        intents: IntentFile,
        *,
        name: str,
        mode: Mode,
        hooks: Sequence[Hook],
        secrets: Callable[[], Secrets],
    ) -> None:
        self._log = log
        self._workspace = workspace
        self._intents = intents
        self._name = name
        self._mode = mode
        self._hooks = hooks
        self._secrets = secrets
        self._tools = OutsideTools(intents)
        self._lock = anyio.Lock()
        self.session_id = ""
        """Empty: there was no call yet."""

    async def call(
        self, tool: str, arguments: Mapping[str, Any], approve: Approve | None, intent: str = ""
    ) -> EndedCall:
        """Run one call and return how it ended; `approve` asks the user, None: nobody can be asked.

        `intent` becomes the session's active one first, where it is another.
        """
        async with self._session() as session:
            if intent and intent != session.state.intent:
                chosen = await self._run(session, SelectIntent.name, {"intent_id": intent}, approve)
                if chosen.finished.status != "ok":
                    return chosen
            return await self._run(session, tool, arguments, approve)

    async def _run(
        self, session: Session, tool: str, arguments: Mapping[str, Any], approve: Approve | None
    ) -> EndedCall:
        secrets, hooks, before = self._secrets(), None, session.seq
        if self._hooks:
            from handrail.tools.gate.hooks import Hooks

            hooks = Hooks(self._hooks, session, self._workspace.root, secrets)
        gate = Gate(
            session,
            self._workspace,
            self._tools,
            OutsideAsker(session, approve),
            answerable=approve is not None,
            secrets=secrets,
            hooks=hooks,
            intents=self._intents,
        )
        await gate.run(ToolCall(id=new_id("call"), name=tool, arguments=dict(arguments)), turn_id="")
        events = [event_from_row(row).event for row in self._log.read(session.stream, after=before)]
        (finished,) = [event for event in events if isinstance(event, ToolFinished)]
        changed = [file for event in events if isinstance(event, ChangePrepared) for file in event.files]
        return EndedCall(finished, tuple(changed) if finished.status == "ok" else ())

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Session]:
        """The agent's session, held; a new one where another process holds it, as one that shows it does."""
        async with self._lock:
            session = Session(self._log, self.session_id).load() if self.session_id else None
            if session is None or not session.try_hold():
                session = self._new_session()
            try:
                yield session
            finally:
                session.release()

    def _new_session(self) -> Session:
        session = Session(self._log, new_id("s"))
        session.try_hold()
        started = SessionStarted(
            session_id=session.id, workspace=str(self._workspace.root), version=__version__, mode=self._mode
        )
        session.append(started, SessionRenamed(title=self._name), SessionLabelled(labels=("mcp",)))
        self.session_id = session.id
        return session
