"""From a tool's result to the next request: how long, and how often the log waits for the disk meanwhile."""

import os
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from bench.agents import EDITED, MODEL, TASK, Bed, Handrail
from bench.server import Server
from handrail.app.app import App, Options, open_app
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import Recorded, TurnFinished
from tests.storage.backends import sqlite_of

DEADLINE_SECONDS = 60.0


class Gap(NamedTuple):
    commits: int
    """The commit of the result included."""
    milliseconds: float


def longest_gap(server: Server) -> Gap:
    """The largest numbers in a task with one read and one edit."""
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(Path(folder), Path(folder, "workspace"), server.url)
        bed.workspace.mkdir()
        (bed.workspace / EDITED).write_text("x = 1\n")
        environ = {"PATH": os.environ["PATH"], **Handrail().prepare(bed)}
        moves = Handrail().moves(bed)
        server.begin(lambda number, _request: moves[min(number, len(moves) - 1)])
        statements: list[tuple[float, str]] = []
        anyio.run(_turn, bed.workspace, environ, statements)
    return counted(statements, [(asked.answered, later.came) for asked, later in pairwise(server.asked)])


async def _turn(workspace: Path, environ: dict[str, str], statements: list[tuple[float, str]]) -> None:
    options = Options(workspace=workspace, model=f"fake/{MODEL}", mode="edit", answerable=False)
    with anyio.fail_after(DEADLINE_SECONDS):
        async with open_app(options, environ) as app:
            _trace(app, statements)
            session = app.new_session()
            await app.send(session, SendMessage(text=TASK))
            async for one in app.follow(session):
                if isinstance(one, Recorded) and isinstance(one.event, TurnFinished):
                    return


def _trace(app: App, statements: list[tuple[float, str]]) -> None:
    connection: Any = sqlite_of(app.log)
    connection.set_trace_callback(lambda text: statements.append((time.perf_counter(), text)))


def counted(statements: list[tuple[float, str]], gaps: list[tuple[float, float]]) -> Gap:
    """The most of each, from where a tool's end is written to the request that closes the gap."""
    found = []
    for begin, end in gaps:
        within = [(at, text) for at, text in statements if begin <= at <= end]
        results = [number for number, (_, text) in enumerate(within) if _is_result(text)]
        if not results:
            raise ValueError("the log shows no tool's result between two requests")
        since = within[results[-1] :]
        found.append(Gap(sum(text == "COMMIT" for _, text in since), (end - since[0][0]) * 1000))
    return Gap(max(gap.commits for gap in found), max(gap.milliseconds for gap in found))


def _is_result(text: str) -> bool:
    return text.startswith("INSERT INTO events") and "tool_finished" in text
