"""A real HTTP server on the loopback that speaks both wire formats, byte by byte as told.

In a test: `with FakeServer([Reply(...)]) as server: ... server.url ... server.requests`. It runs in a thread
of its own, so synchronous and asynchronous tests use it alike. As a process, for benchmarks and whole-process
tests: `python tests/models/fake_server.py --port 0 [--script FILE]` prints its port on the first line and
answers every request from the script (the format of the scripted model) or with a greeting.
"""

import argparse
import asyncio
import gzip
import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

ASKED_AT = ("/messages", "/chat/completions", "/v2/chat", ":streamGenerateContent", "/converse-stream")
Framing = Literal["chunked", "close", "length"]


@dataclass(frozen=True)
class Reply:
    """One answer, and how its bytes go out."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "text/event-stream"
    framing: Framing = "chunked"
    step: int = 0
    """Bytes a write; 0 is all at once."""
    pause: float = 0.0
    """Seconds between writes."""
    cut: int | None = None
    """Close the connection after so many bytes of the body."""
    silent_after: int | None = None
    """Send nothing more after so many bytes; wait for the client to go."""
    repeat: int = 1
    """Send the body so many times, for answers too large to hold."""
    compress: bool = False


@dataclass(frozen=True)
class Recorded:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Said:
    """An answer in words, which both wire formats can carry."""

    text: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, str], ...] = ()
    """(id, name, arguments as JSON text)"""
    input_tokens: int = 100
    cached_tokens: int = 40
    output_tokens: int = 7
    finish: str = ""
    """Empty: what the content calls for. `length`, `filtered` or a reason of the server's own otherwise."""
    signature: str = "sig=="


def openai_bytes(said: Said, newline: str = "\n") -> bytes:
    """The answer as chat completion chunks."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in said.thinking]
    deltas += [{"content": piece} for piece in said.text]
    for index, (call_id, name, arguments) in enumerate(said.calls):
        deltas.append({"tool_calls": [_openai_call(index, "", id=call_id, type="function", name=name)]})
        deltas += [
            {"tool_calls": [_openai_call(index, arguments[at : at + 5])]}
            for at in range(0, len(arguments), 5)
        ]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    reason = {"": "tool_calls" if said.calls else "stop", "filtered": "content_filter"}.get(
        said.finish, said.finish
    )
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    usage = {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "total_tokens": said.input_tokens + said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.cached_tokens},
    }
    chunks.append({"choices": [], "usage": usage})
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    return "".join(f"data: {line}{newline}{newline}" for line in [*lines, "[DONE]"]).encode()


def _openai_call(index: int, arguments: str, name: str = "", **rest: str) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"index": index, "function": function, **rest}


def anthropic_bytes(said: Said, newline: str = "\n") -> bytes:
    """The answer as message events."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": _anthropic_usage(said)}}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if said.thinking:
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in said.thinking]
        signed = {"type": "signature_delta", "signature": said.signature}
        blocks.append(({"type": "thinking", "thinking": ""}, [*thoughts, signed]))
    if said.text:
        pieces = [{"type": "text_delta", "text": piece} for piece in said.text]
        blocks.append(({"type": "text", "text": ""}, pieces))
    for call_id, name, arguments in said.calls:
        steps = range(0, len(arguments), 5)
        parts = [{"type": "input_json_delta", "partial_json": arguments[at : at + 5]} for at in steps]
        blocks.append(({"type": "tool_use", "id": call_id, "name": name, "input": {}}, parts))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "ping"})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = {"": "tool_use" if said.calls else "end_turn", "length": "max_tokens", "filtered": "refusal"}
    delta = {"stop_reason": reason.get(said.finish, said.finish)}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": said.output_tokens}})
    events.append({"type": "message_stop"})
    return "".join(
        f"event: {event['type']}{newline}data: {json.dumps(event, ensure_ascii=False)}{newline}{newline}"
        for event in events
    ).encode()


def _anthropic_usage(said: Said) -> dict[str, int]:
    return {
        "input_tokens": said.input_tokens - said.cached_tokens,
        "cache_read_input_tokens": said.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }


def body_for(path: str, said: Said) -> bytes:
    """The answer in the wire format of the address it was asked at."""
    return anthropic_bytes(said) if path.partition("?")[0].endswith("/messages") else openai_bytes(said)


Answerer = Callable[[Recorded], Reply]


@dataclass
class FakeServer:
    """Answers from a list, in order, or by asking a function; the last entry of a list is kept repeating."""

    replies: Iterable[Reply | Said] | Answerer
    port: int = 0
    models: tuple[str, ...] = ("test-model",)
    listed: Reply | None = None
    """Sent instead of the list of models."""
    tls: ssl.SSLContext | None = None
    requests: list[Recorded] = field(default_factory=list)
    open_connections: int = 0
    accepted: int = 0

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._script = None if callable(self.replies) else list(self.replies)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._ready.wait(60):
            raise TimeoutError("the fake server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Close every connection and listen no more; safe to call twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def wait_until(self, condition: Callable[[], bool], seconds: float = 50.0) -> bool:
        """Whether the condition came to hold in time; looked at whenever the server's state changes."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self.serve())
        self._loop.close()

    async def serve(self) -> None:
        """Answer until told to stop."""
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with self._changed:
            self.open_connections += 1
            self.accepted += 1
        try:
            while (request := await _read_request(reader)) is not None:
                with self._changed:
                    self.requests.append(request)
                    self._changed.notify_all()
                if not await self._send(self._reply(request), reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with self._changed:
                self.open_connections -= 1
                self._changed.notify_all()

    def _reply(self, request: Recorded) -> Reply:
        path = request.path.split("?")[0]
        if request.method == "GET" and path.endswith("/models"):
            listed = {"data": [{"id": name} for name in self.models]}
            return self.listed or Reply(
                json.dumps(listed).encode(), content_type="application/json", framing="length"
            )
        if request.method == "GET" or not path.endswith(ASKED_AT):
            return Reply(b"{}", status=404, content_type="application/json", framing="length")
        if self._script is None:
            assert callable(self.replies)
            return self.replies(request)
        entry = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return entry if isinstance(entry, Reply) else Reply(body_for(path, entry))

    async def _send(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection can be used again."""
        body = gzip.compress(reply.body) if reply.compress else reply.body
        writer.write(_head(reply, len(body)))
        await writer.drain()
        sent = 0
        step = reply.step or len(body) or 1
        for _ in range(reply.repeat):
            for at in range(0, len(body), step):
                piece = body[at : at + step]
                limit = min((n for n in (reply.cut, reply.silent_after) if n is not None), default=None)
                if limit is not None:
                    piece = piece[: max(0, limit - sent)]
                if piece:
                    writer.write(
                        b"%x\r\n%s\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece
                    )
                    sent += len(piece)
                    await writer.drain()
                if limit is not None and sent >= limit:
                    break
                if reply.pause:
                    await asyncio.sleep(reply.pause)
        if reply.cut is not None and reply.cut <= sent:
            return False
        if reply.silent_after is not None:
            await reader.read(1)
            return False
        if reply.framing == "chunked":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return reply.framing != "close"


def _head(reply: Reply, length: int) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} Fake", f"content-type: {reply.content_type}"]
    framing = {"chunked": "transfer-encoding: chunked", "length": f"content-length: {length}"}
    lines.append(framing.get(reply.framing, "connection: close"))
    if reply.compress:
        lines.append("content-encoding: gzip")
    lines += [f"{name}: {value}" for name, value in reply.headers]
    return "\r\n".join([*lines, "", ""]).encode()


async def _read_request(reader: asyncio.StreamReader) -> Recorded | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = await reader.readline()
        if not line:
            return None
        head += line
    first, *rest = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest) if name
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Recorded(method, path, headers, body)


def scripted_answers(answers: list[dict[str, Any]]) -> Answerer:
    """The n-th request of a conversation gets the n-th answer, as the scripted model does it."""

    def answer(request: Recorded) -> Reply:
        turns = sum(message["role"] == "assistant" for message in request.json["messages"])
        entry = answers[min(turns, len(answers) - 1)]
        calls = entry.get("calls", [])
        text = entry.get("text", "")
        said = Said(
            text=(text,) if isinstance(text, str) else tuple(text),
            calls=tuple(
                (call.get("id") or f"call_{turns}_{at}", call["name"], json.dumps(call.get("arguments", {})))
                for at, call in enumerate(calls)
            ),
        )
        return Reply(body_for(request.path, said), pause=entry.get("chunk_delay_ms", 0) / 1000)

    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description="A model server that answers from a script.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path)
    options = parser.parse_args()
    answers = (
        json.loads(options.script.read_text())
        if options.script
        else [{"text": "Hello from the fake server."}]
    )
    with FakeServer(scripted_answers(answers), port=options.port) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
