"""One turn with nobody at the terminal: what is shown of it, and the exit status it ends with."""

import json
import os
import signal
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from handrail.interfaces.cli.opening import named, opened
from handrail.interfaces.cli.status_line import StatusLine
from handrail.interfaces.cli.styles import Line, ansi
from handrail.interfaces.cli.terminal import is_terminal, takes_colour, width_of
from handrail.protocol.commands import Cancel, SendMessage
from handrail.protocol.events import (
    Answered,
    BreakoutPending,
    Delta,
    Recorded,
    RequestStarted,
    RunCompleted,
    RunPaused,
    RunStarted,
    SessionStarted,
    StageStarted,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UserMessage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from anyio.abc import TaskGroup

    from handrail.app import App, Options
    from handrail.config.settings import DisplaySettings
    from handrail.interfaces.cli.screen import Screen

STATUSES = {
    "answered": 0,
    "failed": 1,
    "stuck": 1,
    "interrupted": 1,
    "waiting": 3,
    "budget": 4,
    "unverified": 5,
    "cancelled": 130,
}
NOBODY_ASKED = 3
SAID_NOTHING = (SessionStarted, TurnStarted, RunStarted, RequestStarted)
"""What happens before the model is asked and shows nothing: what shows events is not imported for it."""
STOP_SECONDS = 10.0
"""How long a stop may take before the program leaves anyway; the log then says that it was interrupted."""


class Report(Protocol):
    """Who is shown the turn."""

    def saw(self, recorded: Recorded) -> None: ...

    def finish(self) -> None: ...


def headless(
    options: "Options",
    message: SendMessage,
    *,
    session: str | None,
    as_json: bool,
    images: "Sequence[Path]" = (),
) -> int:
    """Run one turn; its exit status."""
    import anyio

    async def run() -> int:
        async with opened(options) as app:
            session_id = named(app, session) if session is not None else ""
            await app.chosen_model(session_id)
            report = JsonReport() if as_json else TextReport(app.settings.display)
            status_line = StatusLine(
                live=is_terminal(sys.stderr) and not as_json,
                colour=takes_colour(sys.stderr, app.settings.display, os.environ),
            )
            pictures = tuple(app.images.named(file) for file in images)
            whole = message.model_copy(update={"images": pictures, "route": options.route})
            return await one_turn(app, session_id or app.new_session(), whole, report, status_line)

    return anyio.run(run)


async def one_turn(
    app: "App", session_id: str, message: SendMessage, report: Report, status_line: StatusLine
) -> int:
    """Send the message and follow until its turn has ended."""
    import anyio

    status = STATUSES["failed"]
    after = app.last_seq(session_id) if app.state(session_id).turns else 0
    await app.send(session_id, message)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_on_signals, app, session_id, tasks)
        tasks.start_soon(status_line.tick)
        turn_id, refused = "", False
        async for item in app.follow(session_id, after):
            if isinstance(item, Delta):
                status_line.heard(item)
                continue
            status_line.saw(item)
            report.saw(item)
            match item.event:
                case UserMessage() as event if event.message_id == message.message_id:
                    turn_id = event.turn_id
                case ToolFinished(error=error) if error and error.reason == "nobody_to_ask":
                    refused = True
                case TurnFinished() as event if event.turn_id == turn_id:
                    denied = refused and event.reason == "answered"
                    status = NOBODY_ASKED if denied else STATUSES[event.reason]
                    break
        report.finish()
        tasks.cancel_scope.cancel()
    return status


async def cancel_on_signals(app: "App", session_id: str, tasks: "TaskGroup") -> None:
    """The first signal stops the turn, a second one or too long a wait the program."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            await app.send(session_id, Cancel(by="user" if number == signal.SIGINT else "signal"))
            break
        with anyio.move_on_after(STOP_SECONDS):
            async for _ in signals:
                break
    raise KeyboardInterrupt


class JsonReport:
    """One event a line on stdout, each written out at once."""

    def saw(self, recorded: Recorded) -> None:
        head = {"seq": recorded.seq, "at": round(recorded.at, 3)}
        fields = recorded.event.model_dump(mode="json")
        print(json.dumps(head | fields), flush=True)

    def finish(self) -> None:
        """Everything has been written."""


class TextReport:
    """Progress on stderr as it happens; the last answer on stdout at the end."""

    def __init__(self, display: "DisplaySettings") -> None:
        self._colour = takes_colour(sys.stderr, display, os.environ)
        self._answer_colour = takes_colour(sys.stdout, display, os.environ)
        self._answer = ""

    @cached_property
    def _screen(self) -> "Screen":
        from handrail.interfaces.cli.screen import Screen

        return Screen(width_of(sys.stderr), colour=self._colour)

    def saw(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, SAID_NOTHING) or (isinstance(event, StageStarted) and event.kind == "work"):
            return
        if isinstance(event, Answered) and not event.calls:
            self._answer = self._answer if event.apart else event.text
            return
        if isinstance(event, RunPaused | BreakoutPending | RunCompleted):
            self._answer = event.text or self._answer
            return
        if isinstance(event, TurnFinished) and event.reason == "answered":
            self.finish()
        if isinstance(event, UserMessage):
            if event.unattached:
                from handrail.interfaces.cli.rendering import unattached

                self._write(unattached(event, self._screen.width))
        else:
            self._write(self._screen.show(event))

    def finish(self) -> None:
        text, self._answer = self._answer, ""
        if not text:
            return
        if is_terminal(sys.stdout):
            from handrail.interfaces.cli.markdown import render

            rows = render(text, width_of(sys.stdout), colour=self._answer_colour)
            text = "\n".join(ansi(row, colour=self._answer_colour) for row in rows)
        print(text.rstrip("\n"), flush=True)

    def _write(self, rows: list[Line]) -> None:
        for row in rows:
            print(ansi(row, colour=self._colour), file=sys.stderr, flush=True)
