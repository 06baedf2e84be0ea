"""`python -m bench.subagents`: how soon a tree of sub-agents, three deep with a command, is cancelled."""

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import anyio

from handrail.protocol.commands import Cancel, SendMessage
from handrail.protocol.events import SubagentEvent, TurnFinished
from tests.engine.conversation import conversation
from tests.engine.killed_subagent import DEEPEST, SETTINGS, TREE

ROUNDS, WANTED = 5, 1.0


class Figures(NamedTuple):
    """Seconds from the command to the end of the turn."""

    median: float
    slowest: float


def measure() -> Figures:
    taken = [anyio.run(_cancelled) for _ in range(ROUNDS)]
    return Figures(statistics.median(taken), max(taken))


async def _cancelled() -> float:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        (work / "act.sh").write_text("sleep 600\n")
        os.environ["HANDRAIL_HOME"] = str(Path(folder, "home"))
        answers = [*TREE, *DEEPEST["command"]]
        async with conversation(work, answers, mode="auto", settings=SETTINGS) as talk:
            await talk.send(SendMessage(text="Delegate it", route="agent"))
            await talk.until(SubagentEvent, lambda each: each.event.get("tool") == "run")
            began = time.perf_counter()
            await talk.send(Cancel())
            await talk.until(TurnFinished)
            return time.perf_counter() - began


def report(found: Figures) -> list[str]:
    median, slowest = found.median * 1_000, found.slowest * 1_000
    return [
        f"A tree of sub-agents is cancelled after {median:.0f} ms, {slowest:.0f} at most; "
        f"wanted are {WANTED * 1_000:g}."
    ]


if __name__ == "__main__":
    print("\n".join(report(measure())))
