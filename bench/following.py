"""How soon a follower sees each step of a run: in the process that does it, and over another connection."""

import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import anyio

from handrail.app import App, Options, open_app
from handrail.engine.pipeline.definition import Catalogue, Output, Pipeline, Stage, Work
from handrail.pipelines.agent import AGENT
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Recorded, TurnFinished

CALLS = 40
DEADLINE_SECONDS = 60.0
ANSWER = '[{"when": "Question", "text": "{\\"topics\\": []}"}]'


class Delay(NamedTuple):
    """The longest time from an event's commit to a follower, in milliseconds."""

    inside: float
    outside: float


async def _look(work: Work) -> Output:
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
    seen: list[dict[int, float]] = [{}, {}]
    with anyio.fail_after(DEADLINE_SECONDS):
        async with open_app(options, catalogue=CATALOGUE) as app, open_app(options) as other:
            session = app.new_session()
            app.log.listeners.insert(0, lambda: _note(committed, app.last_seq(session)))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_follow, app, session, seen[0])
                tasks.start_soon(_follow, other, session, seen[1])
                await app.send(session, SendMessage(text="look", route=STEPS.name))
    return Delay(*(max(times[seq] - committed[seq] for seq in committed) * 1000 for times in seen))


def _note(committed: dict[int, float], last: int) -> None:
    for seq in range(max(committed, default=1) + 1, last + 1):
        committed[seq] = time.perf_counter()


async def _follow(app: App, session: str, seen: dict[int, float]) -> None:
    async for one in app.follow(session):
        if isinstance(one, Recorded):
            seen[one.seq] = time.perf_counter()
            if isinstance(one.event, TurnFinished):
                return
