"""A model server that answers at once and notes when each request came and how large it was."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

from bench.wire import Said, encode

START_SECONDS = 10.0
ASKED = ("/chat/completions", "/responses", "/messages")
MODELS = {"object": "list", "data": [{"id": "test-model", "object": "model"}]}


@dataclass
class Asked:
    """A request for an answer."""

    came: float
    """When its last byte had come, by the performance counter."""
    size: int
    """Bytes of its body."""
    answered: float = 0.0
    """When the last byte of the answer had gone out."""


Moves = Callable[[int, dict[str, Any]], Said | None]
"""What to say to the n-th request, from 0; None where it is none of the agent's work, such as a title."""


class Server:
    """Runs in a thread while the block lasts. `begin` makes it ready for another run of an agent."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.others: list[str] = []
        """Addresses that were asked for something else."""
        self._moves: Moves = lambda _number, _request: Said("Hello.")
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def begin(self, moves: Moves) -> None:
        """Forget what was asked, and answer so from now on."""
        self.asked, self.others, self._moves = [], [], moves

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError("the fake server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _head(reader):
                await self._answer(head, await _body(head, reader), writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: "Head", body: bytes, writer: asyncio.StreamWriter) -> None:
        came = time.perf_counter()
        if head.method != "POST" or not head.path.partition("?")[0].endswith(ASKED):
            self.others.append(f"{head.method} {head.path}")
            status = 200 if head.path.partition("?")[0].endswith("/models") else 404
            await _send(writer, status, "application/json", json.dumps(MODELS).encode())
            return
        request = json.loads(body)
        number = len(self.asked)
        said = self._moves(number, request)
        asked = Asked(came, len(body))
        if said:
            self.asked.append(asked)
        encoded = encode(head.path, request, said or Said("A title"), number)
        await _send(writer, 200, encoded.content_type, encoded.body)
        asked.answered = time.perf_counter()


class Head(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]


async def _head(reader: asyncio.StreamReader) -> Head | None:
    try:
        text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = text.split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in rest if line)
    return Head(method, path, {name.lower(): value.strip() for name, _, value in pairs})


async def _body(head: Head, reader: asyncio.StreamReader) -> bytes:
    if head.headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(head.headers.get("content-length", "0")))
    body = b""
    while size := int((await reader.readline()).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
    return body


async def _send(writer: asyncio.StreamWriter, status: int, content_type: str, body: bytes) -> None:
    head = f"HTTP/1.1 {status} Fake\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
