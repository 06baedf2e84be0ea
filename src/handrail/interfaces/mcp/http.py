"""MCP over streamable HTTP: on the loopback, behind the same checks as the page."""

import signal
import socket
from collections.abc import Callable

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from handrail.interfaces.http.access import Access, Guard
from handrail.interfaces.http.connection import run_uvicorn
from handrail.interfaces.mcp.server import LimitedLines, McpServer

PATH = "/mcp"


async def serve_http(
    server: McpServer, listening: socket.socket, access: Access, started: Callable[[], None]
) -> None:
    """Answer requests until a signal ends it."""
    manager = StreamableHTTPSessionManager(server.server, max_request_body_size=LimitedLines.most)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == PATH:
            await manager.handle_request(scope, receive, send)
        else:
            await PlainTextResponse(f"MCP is at {PATH}.\n", 404)(scope, receive, send)

    ending = anyio.Event()

    async def end_on_signals() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                ending.set()

    async with manager.run(), anyio.create_task_group() as tasks:
        tasks.start_soon(end_on_signals)
        await run_uvicorn(
            Guard(answer, access), listening, started=started, ending=ending, end_streams=lambda: None
        )
        tasks.cancel_scope.cancel()
