"""`handrail mcp --http` as a process, and a way to it for clients that can send no token."""

import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
from anyio.abc import SocketAttribute, SocketStream

from tests.interfaces.cli.program import DEADLINE, command, environment

TOKEN = "a-token-of-the-tests-0123456789"
ADDRESS = re.compile(r"at (http://127\.0\.0\.1:(\d+)/mcp)")
HEAD = 64_000


@contextmanager
def http_server(workspace: Path, *options: str) -> Iterator[int]:
    """The port of a server that runs as long as the block lasts."""
    words = command("mcp", "--http", "--port", "0", "--token", TOKEN, *options)
    process = subprocess.Popen(words, cwd=workspace, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        found = ADDRESS.search(process.stdout.readline())
        assert found
        yield int(found[2])
    finally:
        process.terminate()
        process.wait(DEADLINE)
        with process:
            pass  # closes its output


@asynccontextmanager
async def with_token(port: int) -> AsyncIterator[str]:
    """An address that passes everything on to the server, with the token and its own name for the host."""

    async def relay(client: SocketStream) -> None:
        async with client, await anyio.connect_tcp("127.0.0.1", port) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                assert len(head) < HEAD
                try:
                    head += await client.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return
            lines, _, body = head.partition(b"\r\n\r\n")
            own = f":{own_port}".encode()
            lines = re.sub(rb"(?mi)^((?:host|origin): \S*)" + own, rb"\1:%d" % port, lines)
            lines = re.sub(rb"(?mi)^connection: .*\r\n", b"", lines + b"\r\n")
            extra = f"Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode()
            await server.send(lines + extra + body)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(copy, client, server, tasks.cancel_scope)
                tasks.start_soon(copy, server, client, tasks.cancel_scope)

    async def copy(source: SocketStream, target: SocketStream, scope: anyio.CancelScope) -> None:
        try:
            async for data in source:
                await target.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        scope.cancel()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener,
        anyio.create_task_group() as tasks,
    ):
        own_port = listener.listeners[0].extra(SocketAttribute.local_port)  # noqa: S610 this is no Django
        tasks.start_soon(listener.serve, relay)
        yield f"http://127.0.0.1:{own_port}/mcp"
        tasks.cancel_scope.cancel()
