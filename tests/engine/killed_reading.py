"""A process that kills itself while it receives an answer: `python -m tests.engine.killed_reading`.

Arguments: the workspace, the route of its message, and `received` (all bytes of the answer are stored, and
nothing more) or `streaming` (so many bytes of an answer that goes on are stored).
"""

import os
import signal
import sys
from pathlib import Path

import anyio

from handrail.app.app import App
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import TurnFinished
from handrail.protocol.ids import session_stream
from tests.engine.conversation import conversation


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(workspace: Path, route: str, when: str) -> None:
    async with conversation(workspace, None, model="mine/test-model", mode="edit") as talk:
        stream = session_stream(talk.id)

        def after_commit() -> None:
            if talk.app.log.read(stream)[-1].type == "answer_received":
                die()

        if when == "received":
            talk.app.log.listeners.append(after_commit)
        await talk.send(SendMessage(text="hello there", route=route))
        if when != "received":
            await watch(talk.app, stream, int(when))
        await talk.until(TurnFinished)


async def watch(app: App, stream: str, size: int) -> None:
    while sum(map(len, app.log.received(stream).values())) < size:
        await anyio.sleep(0.01)
    die()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2], sys.argv[3])
