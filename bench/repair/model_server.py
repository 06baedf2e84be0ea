"""The embedded model's server, started as Handrail starts it, behind a proxy that counts tokens.

Every agent talks to the proxy, so all are counted alike. Handrail finds it as it finds its own server: by
the notice file in its home.
"""

import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import anyio
from msgspec.structs import replace

from bench.agents import CACHE
from handrail.config.files import FileLock, try_lock
from handrail.config.places import make_private
from handrail.models.embedded.model_files import QWEN, find_model_file
from handrail.models.embedded.server_files import RunningServer, ServerFiles
from handrail.models.embedded.server_process import ServerProcess

MODEL = QWEN.model
ANSWERING = ("/v1/chat/completions", "/v1/completions", "/completion", "/infill")
UPSTREAM_SECONDS = 600.0
HANG_UP_SECONDS = 60.0


@dataclass
class Answer:
    """Tokens of one answer of the model."""

    prompt: int = 0
    """All tokens of the request, whether or not the server had read them before."""
    fresh: int = 0
    """Those that it had to read."""
    out: int = 0
    text: str = ""
    whole: bool = False
    """False where the agent hung up or was stopped: its output is then counted by the pieces that came."""

    def read(self, piece: dict[str, Any]) -> None:
        """Count a piece of a streamed answer, or a whole one, with what llama.cpp tells about it."""
        for choice in piece.get("choices") or ():
            said = choice.get("delta") or choice.get("message") or {}
            calls = said.get("tool_calls") or ()
            text = str(said.get("content") or choice.get("text") or "") + "".join(map(_arguments, calls))
            self.text += text
            self.out += bool(text)
        if progress := piece.get("prompt_progress"):
            self.prompt, self.fresh = progress["total"], progress["total"] - progress["cache"]
        if timings := piece.get("timings"):
            self.fresh, self.out, self.whole = timings["prompt_n"], timings["predicted_n"], True
            self.prompt = self.fresh + timings["cache_n"]


def _arguments(call: dict[str, Any]) -> str:
    return str((call.get("function") or {}).get("arguments") or "")


class Proxy:
    """Passes requests on to a model's server and counts its answers; `begin` starts another count."""

    def __init__(self, url: str, key: str) -> None:
        self.upstream = urlsplit(url).netloc
        self.key = key
        self.answers: list[Answer] = []
        self.open: set[socket.socket] = set()
        self.guard = threading.Lock()

        class Handler(_Forward):
            proxy = self

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def begin(self) -> None:
        """Hang up on what still runs, such as the request of an agent that was stopped; count from zero."""
        with self.guard:
            for connection in self.open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + HANG_UP_SECONDS
        while self.open and time.monotonic() < deadline:
            time.sleep(0.01)
        self.answers = []

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def tokens(self) -> dict[str, int]:
        """Their sums, as they are recorded."""
        answers = list(self.answers)
        return {name: sum(getattr(each, name) for each in answers) for name in ("prompt", "fresh", "out")}


def computed(tokens: dict[str, int]) -> int:
    """Tokens that the server had to read or write; a prompt in its cache costs next to nothing."""
    return tokens["fresh"] + tokens["out"]


class _Forward(BaseHTTPRequestHandler):
    proxy: ClassVar[Proxy]

    def do_GET(self) -> None:
        self._pass_on(b"")

    def do_POST(self) -> None:
        self._pass_on(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _pass_on(self, body: bytes) -> None:
        upstream = http.client.HTTPConnection(self.proxy.upstream, timeout=UPSTREAM_SECONDS)
        upstream.connect()
        connection, answer = upstream.sock, Answer()
        with self.proxy.guard:
            self.proxy.open.add(connection)
            if urlsplit(self.path).path in ANSWERING:
                self.proxy.answers.append(answer)
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.proxy.key}"}
            upstream.request(self.command, self.path, body or None, headers)
            self._copy(upstream.getresponse(), answer)
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # one of the two has hung up
        finally:
            upstream.close()
            with self.proxy.guard:
                self.proxy.open.discard(connection)

    def _copy(self, response: http.client.HTTPResponse, answer: Answer) -> None:
        kind = response.getheader("Content-Type", "application/json")
        self.send_response(response.status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        if not kind.startswith("text/event-stream"):
            whole = response.read()
            if kind.startswith("application/json"):
                with suppress(ValueError):
                    answer.read(json.loads(whole))
            self.wfile.write(whole)
            return
        while line := response.readline():
            if line.startswith(b"data: {"):
                answer.read(json.loads(line.removeprefix(b"data: ")))
            self.wfile.write(line)
            self.wfile.flush()

    def log_message(self, format: str, *words: Any) -> None:  # noqa: A002 the library's own name
        """Nothing: only results are printed."""


class ModelServer:
    """The embedded server that runs, and the proxy before it."""

    def __init__(self, file: Path, process: ServerProcess, running: RunningServer, proxy: Proxy) -> None:
        self.file = file
        self.running = running
        self.proxy = proxy
        self._process = process

    def check(self) -> None:
        """Exit where the server has ended: what failed for that reason is no result."""
        if self._process.running() != self.running:
            raise SystemExit(
                f"The embedded server has ended; its log is {self._process.files.log}. Run this again."
            )

    @property
    def url(self) -> str:
        """What agents that are not Handrail are given."""
        return f"{self.proxy.url}/v1"

    def announce(self, home: Path) -> FileLock:
        """Let a Handrail with this home take the proxy for its embedded server while the lock is held."""
        files = ServerFiles(make_private(home / "models" / "run" / MODEL))
        lock = try_lock(files.server_lock)
        if lock is None:
            raise SystemExit(f"{files.server_lock} is held by another process.")
        files.publish(replace(self.running, url=self.proxy.url))
        return lock


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """One server for all harnesses, while the block lasts; it ends by itself a minute later."""
    file = find_model_file(QWEN, os.environ)
    if file is None:
        raise SystemExit(
            "The model's file is not here: run `handrail model fetch`, or set HANDRAIL_LOCAL_MODEL."
        )
    process = ServerProcess(QWEN, file, make_private(CACHE / "embedded"))

    async def connect() -> None:
        async for _ in process.connect():
            pass

    anyio.run(connect)
    running = process.running()
    if running is None:
        raise SystemExit(f"The embedded server has ended; its log is {process.files.log}.")
    proxy = Proxy(running.url, running.key)
    try:
        yield ModelServer(file, process, running, proxy)
    finally:
        proxy.close()
        process.release()
