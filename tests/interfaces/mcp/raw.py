"""An MCP client that writes what it likes: lines of JSON-RPC to a server process."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from tests.interfaces.cli.program import command, environment

DEADLINE = 60.0


class RawClient:
    def __init__(self, workspace: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            command("mcp", *options),
            cwd=workspace,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._lines: Queue[dict[str, Any]] = Queue()
        self._last = 100
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(json.loads(line))

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def send(self, method: str, **params: Any) -> int:
        self._last += 1
        self.write(
            json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}).encode()
            + b"\n"
        )
        return self._last

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to the request of this number; others are left out."""
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                found = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty as error:
                raise AssertionError(f"there was no answer to request {number}") from error
            if found.get("id") == number:
                return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.answer(self.send("tools/call", name=tool, arguments=arguments))

    def initialize(self) -> None:
        client = {"name": "raw", "version": "1"}
        number = self.send("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        assert "result" in self.answer(number)
        self.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def hang_up(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)
        self.hang_up()
        self._reader.join(DEADLINE)
        assert self.process.stdout
        self.process.stdout.close()
