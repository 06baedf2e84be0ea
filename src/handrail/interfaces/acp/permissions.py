"""Approvals and questions as the client asks them; an answer given elsewhere closes the client's question."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, NamedTuple

import anyio
from acp import schema
from acp.agent.connection import AgentSideConnection
from acp.exceptions import RequestError
from anyio.abc import TaskGroup
from msgspec import Struct, field
from pydantic import ValidationError

from handrail.app.app import App
from handrail.interfaces.acp.notes import plain_text
from handrail.interfaces.acp.stdio import LAST_SENT, Stdio
from handrail.interfaces.acp.tool_calls import Call, text_content
from handrail.protocol import events
from handrail.protocol.commands import AnswerApproval, AnswerQuestion
from handrail.protocol.errors import HandrailError
from handrail.protocol.values import DECLINED, STORED

Decision = Literal["once", "always", "allow", "reject"]
DECISIONS: dict[str, Decision] = {"once": "once", "always": "always", "allow": "allow", "reject": "reject"}
NO_ANSWER = "none"
CLOSE_SECONDS = 5.0


class Asked(Struct, eq=False):
    """A question that the client shows."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Link(NamedTuple):
    """The way to the client, and the tasks that live as long as the connection."""

    client: AgentSideConnection
    stdio: Stdio
    tasks: TaskGroup


class Permissions:
    """The open questions of one session."""

    def __init__(self, app: App, session_id: str, link: Link, tell: Callable[[str], Awaitable[None]]) -> None:
        """`tell` shows the user a line of text."""
        self._app = app
        self._session_id = session_id
        self._client, self._stdio, self._tasks = link
        self._tell = tell
        self._open: dict[str, Asked] = {}

    def approval(self, asked: events.ApprovalAsked, call: Call | None) -> None:
        options = [
            schema.PermissionOption(option_id="once", name="Allow", kind="allow_once"),
            schema.PermissionOption(option_id="always", name="Always, in this session", kind="allow_always"),
            schema.PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
        ]
        if asked.entry:
            name = f"Always: put `{asked.entry}` on my list"
            options.insert(2, schema.PermissionOption(option_id="allow", name=name, kind="allow_always"))
        about = (
            call.asked() if call else schema.ToolCallUpdate(tool_call_id=asked.call_id, title=asked.summary)
        )

        async def answered(option: str) -> None:
            decision = DECISIONS.get(option, "reject")
            await self._app.send(self._session_id, AnswerApproval(asked.approval_id, decision))

        self._ask(asked.approval_id, about, options, answered)

    def question(self, asked: events.QuestionAsked) -> None:
        """A question with options, or for a secret; any other is answered by the next message."""
        answers = {str(number): option for number, option in enumerate(asked.options)}
        names, otherwise, no_answer = answers, "None of these", "None of these options."
        if asked.secret:
            answers, names = {"0": STORED}, {"0": "I have stored it"}
            otherwise, no_answer = "I do not give it", DECLINED
        options = [
            schema.PermissionOption(option_id=number, name=name, kind="allow_once")
            for number, name in names.items()
        ]
        options.append(schema.PermissionOption(option_id=NO_ANSWER, name=otherwise, kind="reject_once"))
        about = schema.ToolCallUpdate(
            tool_call_id=asked.question_id, title=asked.question, kind="think", status="pending"
        )
        about.content = text_content(plain_text(asked))

        async def answered(option: str) -> None:
            answer = answers.get(option, no_answer)
            await self._app.send(self._session_id, AnswerQuestion(asked.question_id, answer))

        self._ask(asked.question_id, about, options, answered)

    def close(self, asked_id: str) -> None:
        """Take back a question: it was answered elsewhere, or its turn is over."""
        if asked := self._open.pop(asked_id, None):
            asked.scope.cancel()

    def close_all(self) -> None:
        for asked_id in list(self._open):
            self.close(asked_id)

    def _ask(
        self,
        asked_id: str,
        about: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        answered: Callable[[str], Awaitable[None]],
    ) -> None:
        if asked_id in self._open:
            return
        asked = self._open[asked_id] = Asked()
        self._tasks.start_soon(self._wait, asked_id, asked, about, options, answered)

    async def _wait(
        self,
        asked_id: str,
        asked: Asked,
        about: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        answered: Callable[[str], Awaitable[None]],
    ) -> None:
        with asked.scope:
            try:
                response = await self._client.request_permission(self._session_id, about, options)
            except asyncio.CancelledError:
                with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
                    await self._cancel_request()
                raise
            except (RequestError, ValidationError) as problem:
                text = f"The editor could not ask you ({problem}). Answer in another window, or cancel."
                await self._tell(text)
            except ConnectionError:
                pass  # the client has gone; others can still answer
            else:
                self._open.pop(asked_id, None)
                # A question that was dismissed is a no: nothing would ask it again.
                picked = isinstance(response.outcome, schema.AllowedOutcome)
                try:
                    await answered(response.outcome.option_id if picked else NO_ANSWER)
                except HandrailError as problem:
                    await self._tell(str(problem))

    async def _cancel_request(self) -> None:
        """Tell the client that its answer is no longer needed; clients that do not know this ignore it."""
        params = {"requestId": LAST_SENT.get()}
        with suppress(ConnectionError):
            await self._stdio.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params})
