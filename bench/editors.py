"""`handrail acp`: its start until `initialize` is answered, and what it adds to a first chunk."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from bench.timing import median_ms, python_pass_ms
from handrail.app.app import Options, open_app
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Delta

STARTS, PROMPTS = 7, 15
ANSWER = '[{"when": "Question", "text": "one two three"}]'
WANTED_MS = 20.0


class Editors(NamedTuple):
    start: float
    """Milliseconds until `initialize` is answered."""
    start_ratio: float
    """The same in starts of `python -c pass`."""
    chunk: float
    """Milliseconds from the prompt to its first chunk, at the client."""
    inside: float
    """From the message to the model's first chunk, at a follower in the same process."""

    @property
    def added(self) -> float:
        return self.chunk - self.inside


class Agent:
    """`handrail acp` as a process, spoken to line by line."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._number = 0

    def ask(self, method: str, **params: Any) -> int:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return self._number

    def messages(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout
        yield from map(json.loads, self._process.stdout)

    def answer(self, number: int) -> Any:
        return next(each["result"] for each in self.messages() if each.get("id") == number)


@contextmanager
def agent(workspace: Path, model: str) -> Iterator[Agent]:
    words = [sys.executable, "-P", "-m", "handrail", "acp", "--model", model, "--route", "agent"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=workspace, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield Agent(process)
        finally:
            process.kill()


def measure() -> Editors:
    with tempfile.TemporaryDirectory() as folder:
        workspace, script = Path(folder, "workspace"), Path(folder, "script.json")
        workspace.mkdir()
        script.write_text(ANSWER)
        os.environ["HANDRAIL_HOME"] = str(Path(folder, "home"))
        model = f"scripted/{script}"

        def start() -> None:
            with agent(workspace, model) as started:
                started.answer(started.ask("initialize", protocolVersion=1))

        start()  # the first one writes compiled modules
        began, idle = median_ms(start, STARTS), python_pass_ms()
        chunk = statistics.median(_chunks(workspace, model))
        inside = statistics.median(anyio.run(_inside, Options(workspace, model=model, route="agent")))
    return Editors(began, began / idle.whole, chunk, inside)


def _chunks(workspace: Path, model: str) -> list[float]:
    found = []
    with agent(workspace, model) as started:
        started.answer(started.ask("initialize", protocolVersion=1))
        made = started.answer(started.ask("session/new", cwd=str(workspace), mcpServers=[]))
        for _ in range(PROMPTS):
            prompt, began, first = [{"type": "text", "text": "Question"}], time.perf_counter(), 0.0
            number = started.ask("session/prompt", sessionId=made["sessionId"], prompt=prompt)
            for message in started.messages():
                update = message.get("params", {}).get("update", {})
                if not first and update.get("sessionUpdate") == "agent_message_chunk":
                    first = time.perf_counter()
                if message.get("id") == number:
                    break
            found.append((first - began) * 1000)
    return found


async def _inside(options: Options) -> list[float]:
    found = []
    async with open_app(options) as app:
        session = app.new_session()
        for _ in range(PROMPTS):
            seq, began, first = app.last_seq(session), time.perf_counter(), 0.0
            await app.send(session, SendMessage(text="Question"))
            async with aclosing(app.follow(session, seq)) as items:
                async for item in items:
                    if isinstance(item, Delta):
                        first = first or time.perf_counter()
                    elif item.event.type == "turn_finished":
                        break
            found.append((first - began) * 1000)
    return found


def report(found: Editors) -> list[str]:
    return [
        f"handrail acp: initialize is answered after {found.start:.0f} ms, {found.start_ratio:.1f} times"
        f" `python -c pass`; a prompt's first chunk comes after {found.chunk:.1f} ms, {found.added:.1f} more"
        f" than the model's inside; wanted are {WANTED_MS:.0f}."
    ]


if __name__ == "__main__":
    print("\n".join(report(measure())))
