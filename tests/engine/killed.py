"""A process that begins a run and is killed in it: `python -m tests.engine.killed WORKSPACE`."""

import sys
from pathlib import Path

import anyio

from handrail.protocol.commands import SendMessage
from handrail.protocol.events import TurnFinished
from tests.engine.conversation import conversation
from tests.engine.scripted import QUESTION, answers, catalogue


async def main(workspace: Path) -> None:
    slow = [each | {"chunk_delay_ms": 60_000} if "gather" in each["when"] else each for each in answers()]
    async with conversation(workspace, slow, mode="edit", catalogue=catalogue()) as talk:
        await talk.send(SendMessage(text=QUESTION, route="report"))
        await talk.until(TurnFinished)
        await talk.turn("1")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
