"""Server-sent events of one reader, with heartbeats, until it leaves or takes nothing, or the server ends."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from handrail.interfaces.http.event_feed import SEND_SECONDS
from handrail.interfaces.http.workspaces import OpenWorkspace
from handrail.protocol.errors import HandrailError


class StreamForm(NamedTuple):
    """How a stream says what is not one of its messages."""

    heartbeat: bytes
    seconds: float
    """Between two heartbeats."""
    problem: Callable[[HandrailError], bytes]


class MessageStream(Response):
    def __init__(
        self, workspace: OpenWorkspace, messages: AsyncGenerator[bytes, None], form: StreamForm
    ) -> None:
        super().__init__()
        self._workspace = workspace
        self._messages = messages
        self._form = form

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        writing = anyio.Lock()
        async with anyio.create_task_group() as tasks, aclosing(self._messages) as messages:

            async def put(data: bytes) -> None:
                async with writing:
                    with anyio.move_on_after(SEND_SECONDS) as sending:
                        await send({"type": "http.response.body", "body": data, "more_body": True})
                if sending.cancelled_caught:
                    scope["state"]["abort"]()  # closing would wait until the reader takes the rest
                    tasks.cancel_scope.cancel()

            async def until_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            async def until_ended() -> None:
                await self._workspace.feeds.ended()
                tasks.cancel_scope.cancel()

            async def beat() -> None:
                while True:
                    await anyio.sleep(self._form.seconds)
                    await put(self._form.heartbeat)

            tasks.start_soon(until_gone)
            tasks.start_soon(until_ended)
            tasks.start_soon(beat)
            try:
                async for message in messages:
                    await put(message)
            except HandrailError as problem:
                await put(self._form.problem(problem))
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
