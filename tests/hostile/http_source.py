"""A hostile MCP server over HTTP, written with sockets alone; it behaves until its tool `act` is called."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream

EVENTS, JSON = "text/event-stream", "application/json"
BLOCK = b"x" * 1_000_000


class HostileServer:
    def __init__(self, how: str) -> None:
        self.how = how
        self.address = ""
        self.calls = 0
        self.elsewhere: list[bytes] = []
        """Requests at the address that it redirects to."""

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            try:
                while request := await self._read(stream):
                    await self._answer(stream, *request)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                return  # the client has gone

    async def _read(self, stream: SocketStream) -> tuple[bytes, dict[str, Any]] | None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += await stream.receive()
        head, _, body = data.partition(b"\r\n\r\n")
        sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        length = int(sizes[0].split(b":")[1]) if sizes else 0
        while len(body) < length:
            body += await stream.receive()
        return head, json.loads(body or b"{}")

    async def _answer(self, stream: SocketStream, head: bytes, message: dict[str, Any]) -> None:
        if head.startswith(b"POST /elsewhere"):
            self.elsewhere.append(head)
        if not head.startswith(b"POST /mcp"):
            await stream.send(response("405 Method Not Allowed", b""))
            return
        match message.get("method", ""):
            case "initialize" if self.how == "hangs at start":
                await anyio.sleep_forever()
                return
            case "initialize":
                version = message["params"]["protocolVersion"]
                info = {"name": "hostile", "version": "1"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                tool = {"name": "act", "description": "Act.", "inputSchema": {"type": "object"}}
                result = {"tools": [tool]}
            case "tools/call":
                self.calls += 1
                await self._misbehave(stream)
                return
            case method if method.startswith("notifications/"):
                await stream.send(response("202 Accepted", b""))
                return
            case _:
                error = {"code": -32601, "message": "Method not found"}
                await stream.send(reply(message.get("id"), error=error))
                return
        await stream.send(reply(message["id"], result=result))

    async def _misbehave(self, stream: SocketStream) -> None:
        match self.how:
            case "hangs":
                await anyio.sleep_forever()
            case "stalls":
                await stream.send(opened(JSON) + b'{"jsonrpc": "2.0", "id": ')
                await anyio.sleep_forever()
            case "floods":
                await stream.send(opened(JSON) + b'{"jsonrpc": "2.0", "result": "')
                await self._flood(stream)
            case "floods an event":
                await stream.send(opened(EVENTS) + b"data: ")
                await self._flood(stream)
            case "is compressed":
                await stream.send(opened(JSON, "content-encoding: gzip\r\n") + BLOCK)
            case "breaks":
                await stream.send(response("200 OK", b'{"jsonrpc": "2.0", "id": \n', JSON))
            case "goes away":
                await stream.send(opened(JSON) + b'{"jsonrpc"')
                await stream.aclose()
            case "redirects":
                other = self.address.replace("127.0.0.1", "localhost").replace("/mcp", "/elsewhere")
                await stream.send(response("307 Temporary Redirect", b"", more=f"location: {other}\r\n"))

    async def _flood(self, stream: SocketStream) -> None:
        for _ in range(1_000):
            await stream.send(BLOCK)


def opened(kind: str, more: str = "") -> bytes:
    """The head of an answer that lasts until the connection is closed."""
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{more}connection: close\r\n\r\n".encode()


def response(status: str, body: bytes, kind: str = JSON, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def reply(number: object, **content: Any) -> bytes:
    return response("200 OK", json.dumps({"jsonrpc": "2.0", "id": number, **content}).encode())


@asynccontextmanager
async def serving(server: HostileServer) -> AsyncIterator[str]:
    """Its address."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - of anyio
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        server.address = f"http://127.0.0.1:{port}/mcp"
        yield server.address
        tasks.cancel_scope.cancel()
