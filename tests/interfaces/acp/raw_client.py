"""A client without the SDK, line by line: it can send anything, stop reading, and die at any point."""

import io
import json
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interfaces.cli.program import DEADLINE, command, environment

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
Found = Callable[[dict[str, Any]], bool]


class RawClient:
    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        assert process.stdin
        assert isinstance(process.stdout, io.BufferedReader)
        self.process = process
        self.folder = folder
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.seen: list[dict[str, Any]] = []
        self._numbers = iter(range(101, 1000))

    def send(self, message: dict[str, Any]) -> None:
        self.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.stdin.flush()

    def ask(self, method: str, **params: Any) -> int:
        """Send a request, and do not wait for its answer; its id."""
        number = next(self._numbers)
        self.send({"id": number, "method": method, "params": params})
        return number

    def until(self, found: Found) -> dict[str, Any]:
        """The first message of which it is true, seen before or not."""
        deadline = time.monotonic() + DEADLINE
        if known := next(filter(found, self.seen), None):
            return known
        while True:
            wait = deadline - time.monotonic()
            if not self.stdout.peek() and not select.select([self.stdout], [], [], max(0.0, wait))[0]:
                raise AssertionError("the agent did not send it")
            line = self.stdout.readline()
            assert line, "the agent closed its output"
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            self.seen.append(message)
            if found(message):
                return message

    def answer(self, number: int) -> dict[str, Any]:
        """The result of a request."""
        message = self.until(lambda each: each.get("id") == number and "method" not in each)
        result: dict[str, Any] = message["result"]
        return result

    def asked(self, title: str) -> dict[str, Any]:
        """The request for permission with this title."""
        method = "session/request_permission"
        return self.until(
            lambda each: each.get("method") == method and title in each["params"]["toolCall"]["title"]
        )

    def permit(self, asked: dict[str, Any], option: str = "once") -> None:
        outcome = {"outcome": {"outcome": "selected", "optionId": option}}
        self.send({"id": asked["id"], "result": outcome})

    def shows(self, text: str) -> None:
        """Wait until a message of the session has this text."""
        self.until(lambda each: text in str(each.get("params", {}).get("update", {}).get("content", "")))

    def new(self) -> str:
        """Initialize, and open a new session; its id."""
        self.answer(self.ask("initialize", protocolVersion=1))
        return str(self.answer(self.ask("session/new", cwd=str(self.folder), mcpServers=[]))["sessionId"])

    def prompt(self, session: str, text: str) -> int:
        return self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


@contextmanager
def raw_client(folder: Path, model: str, *options: str) -> Iterator[RawClient]:
    process = subprocess.Popen(
        command("acp", "--model", model, *options),
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            yield RawClient(process, folder)
        finally:
            process.kill()
