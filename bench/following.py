"""How soon a follower sees each step of a run: in the process that does it, and in another one."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.streams.text import TextReceiveStream

from handrail.app.app import App, Options, open_app
from handrail.engine.pipeline import Catalogue, Output, Pipeline, Stage, StepContext
from handrail.pipelines.load import AGENT
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Recorded, TurnFinished

CALLS = 40
DEADLINE_SECONDS = 60.0
ANSWER = '[{"when": "Question", "text": "{\\"topics\\": []}"}]'


class Delay(NamedTuple):
    """The longest time from an event's commit to a follower, in milliseconds."""

    inside: float
    outside: float


async def _look(work: StepContext) -> Output:
    for _ in range(CALLS):
        await work.call("list", {"path": "."})
    return {}


STEPS = Pipeline(
    "steps", stages=(Stage("plan", "ask", schema={"type": "object"}), Stage("look", "code", step="look"))
)
CATALOGUE = Catalogue({AGENT.name: AGENT, STEPS.name: STEPS}, steps={"look": _look})


def measure() -> Delay:
    """A run of one question and forty calls, followed twice."""
    with tempfile.TemporaryDirectory() as folder:
        workspace, script = Path(folder, "workspace"), Path(folder, "script.json")
        workspace.mkdir()
        script.write_text(ANSWER)
        os.environ["HANDRAIL_HOME"] = str(Path(folder, "home"))
        return anyio.run(_measured, Options(workspace=workspace, model=f"scripted/{script}"))


async def _measured(options: Options) -> Delay:
    committed: dict[int, float] = {}
    inside: dict[int, float] = {}
    with anyio.fail_after(DEADLINE_SECONDS):
        async with open_app(options, catalogue=CATALOGUE) as app:
            session = app.new_session()
            app.log.listeners.insert(0, lambda: _note(committed, app.last_seq(session)))
            command = [
                sys.executable,
                "-m",
                "bench.following",
                str(options.workspace),
                options.model,
                session,
            ]
            async with (
                await anyio.open_process(command, stderr=None) as child,
                anyio.create_task_group() as tasks,
            ):
                lines = TextReceiveStream(child.stdout) if child.stdout else None
                assert lines
                told = await lines.receive()  # it sees the session: it follows
                tasks.start_soon(_follow, app, session, inside.__setitem__)
                await app.send(session, SendMessage(text="look", route=STEPS.name))
                told += "".join([part async for part in lines])
    outside = {int(seq): float(at) for seq, at in (line.split() for line in told.splitlines())}
    return Delay(*(max(seen[seq] - committed[seq] for seq in committed) * 1000 for seen in (inside, outside)))


def _note(committed: dict[int, float], last: int) -> None:
    for seq in range(max(committed, default=1) + 1, last + 1):
        committed[seq] = time.monotonic()


async def _follow(app: App, session: str, saw: Callable[[int, float], None]) -> None:
    async for one in app.follow(session):
        if isinstance(one, Recorded):
            saw(one.seq, time.monotonic())
            if isinstance(one.event, TurnFinished):
                return


async def _tell(workspace: str, model: str, session: str) -> None:
    """The follower in another process: one line an event."""
    async with open_app(Options(workspace=Path(workspace), model=model)) as app:
        await _follow(app, session, lambda seq, at: print(seq, at, flush=True))


if __name__ == "__main__":
    anyio.run(_tell, sys.argv[1], sys.argv[2], sys.argv[3])
