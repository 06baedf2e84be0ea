"""A long session: does opening it and taking the next turn cost more than in a short one?"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio

from bench.timing import Measured, median_ms
from handrail.app.app import Options, open_app
from handrail.config.places import find_places, workspace_folder
from handrail.context.digest import (
    compaction_event,
    compaction_is_due,
    plan_compaction,
    request_limit,
    request_size,
)
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import (
    Answered,
    Event,
    Recorded,
    RequestStarted,
    SessionStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from handrail.protocol.ids import session_stream
from handrail.protocol.values import ToolCall, Usage
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from tests.storage.backends import sqlite_of

SHORT, LONG = 10, 10_000
WINDOW, FIXED = 32_768, 1_200
MODEL = "scripted/x"
WORDS = "Some words as they stand in a conversation about code, neither short nor long. " * 4


def measure() -> Iterator[Measured]:
    """Both sessions in one workspace; medians of an open application and of fresh processes."""
    with tempfile.TemporaryDirectory() as folder:
        workspace, script = Path(folder, "workspace"), Path(folder, "script.json")
        workspace.mkdir()
        script.write_text(f'{{"context_window": {WINDOW}, "answers": [{{"when": "next", "text": "yes"}}]}}')
        os.environ["HANDRAIL_HOME"] = str(Path(folder, "home"))
        options = Options(workspace=workspace, model=f"scripted/{script}")
        for count in (SHORT, LONG):
            build(workspace, f"s_{count}", count)
        for name, action, runs in (("in process", turn_inside, 25), ("whole process", turn_outside, 9)):
            short, long = (median_ms(partial(action, options, f"s_{count}"), runs) for count in (SHORT, LONG))
            what = f"open and take a turn after {LONG:,} turns, {name}"
            yield Measured(what, long, f"after {SHORT} turns", long / short)


def build(workspace: Path, session_id: str, turns: int) -> None:
    """A session of so many turns with a tool call each, compacted as the engine does it."""
    log = open_log(workspace_folder(find_places(os.environ), workspace))
    sqlite_of(log).execute("PRAGMA synchronous = OFF")  # only the building; what is measured syncs
    session = Session(log, session_id)
    session.try_hold()
    session.append(SessionStarted(session_id=session_id, workspace=str(workspace), version="bench"))
    for number in range(1, turns + 1):
        session.append(*turn(number))
        size = request_size(FIXED, session.state.cut, session.transcript)
        if compaction_is_due(size, WINDOW, WINDOW // 4) and (
            cutting := plan_compaction(session.transcript, FIXED, WINDOW)
        ):
            session.append(compaction_event(session.state, cutting, size, request_limit(WINDOW, WINDOW // 4)))
        session.save_snapshot()
    session.release()
    log.close()


def turn(number: int) -> list[Event]:
    """A turn as the engine records it."""
    turn_id, message = f"t_{number}", f"m_{number}"
    path = f"src/file_{number % 300}.py"
    call = ToolCall(id=f"c_{number}", name="read", arguments={"path": path})
    return [
        UserMessage(message_id=f"u_{number}", turn_id=turn_id, text=WORDS),
        TurnStarted(turn_id=turn_id, number=number, model=MODEL, mode="ask"),
        RequestStarted(turn_id=turn_id, request_id="r", message_id=message, model=MODEL),
        Answered(
            turn_id=turn_id,
            request_id="r",
            message_id=message,
            model=MODEL,
            text="",
            calls=(call,),
            end="tool_calls",
        ),
        ToolStarted(
            turn_id=turn_id,
            call_id=call.id,
            tool="read",
            arguments=call.arguments,
            kind="safe",
            summary=path,
        ),
        ToolFinished(turn_id=turn_id, call_id=call.id, tool="read", status="ok", content=WORDS),
        RequestStarted(turn_id=turn_id, request_id="q", message_id=f"n_{number}", model=MODEL),
        Answered(
            turn_id=turn_id,
            request_id="q",
            message_id=f"n_{number}",
            model=MODEL,
            text=WORDS,
            end="stop",
            usage=Usage(input_tokens=900, output_tokens=90),
        ),
        TurnFinished(turn_id=turn_id, reason="answered"),
    ]


def turn_inside(options: Options, session_id: str) -> None:
    """Open the application, take one turn, close it."""
    anyio.run(_turn_inside, options, session_id)


async def _turn_inside(options: Options, session_id: str) -> None:
    async with open_app(options) as app:
        head = app.log.head(session_stream(session_id))
        await app.send(session_id, SendMessage(text="next"))
        async for one in app.follow(session_id, after=head.seq if head else 0):
            if isinstance(one, Recorded) and isinstance(one.event, TurnFinished):
                return


def turn_outside(options: Options, session_id: str) -> None:
    """The same by a process of its own."""
    arguments = ["run", "next", "--session", session_id, "--model", options.model]
    where = ["-C", str(options.workspace)]
    subprocess.run([sys.executable, "-m", "handrail", *arguments, *where], check=True, capture_output=True)
