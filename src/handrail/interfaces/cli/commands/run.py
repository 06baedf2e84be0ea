"""`handrail run TASK`: one turn without a conversation; progress on stderr, the answer on stdout."""

import json
import signal
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.activity import StatusLine
from handrail.interfaces.cli.options import message_text, opened_app, options_for, turn_options, user_path
from handrail.interfaces.cli.render.styles import Line
from handrail.interfaces.cli.terminal import print_data, print_json, print_text
from handrail.protocol import events
from handrail.protocol.commands import Cancel, SendMessage
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from handrail.app.app import App, Options
    from handrail.config.settings import DisplaySettings
    from handrail.interfaces.cli.render.screen import Screen

MAX_TASK_BYTES = 10_000_000
MAX_SCHEMA_BYTES = 100_000
STATUSES = {
    "answered": 0,
    "failed": 1,
    "stuck": 1,
    "interrupted": 1,
    "waiting": terminal.NOBODY_TO_ASK,
    "budget": 4,
    "unverified": 5,
    "escalated": 6,
    "cancelled": 130,
}
SILENT_EVENTS = (events.SessionStarted, events.TurnStarted, events.RequestStarted)
"""Events before the first request that show nothing, so that the code that shows events is not imported."""
STOP_SECONDS = 10.0
"""How long a stop may take before the program exits anyway; the log then says "interrupted"."""


@click.command()
@click.argument("task", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One event a line on stdout.")
@click.option("--raw", is_flag=True, help="Into a pipe or file: the answer with its control characters.")
@click.option("--session", metavar="ID", help="Continue this session.")
@click.option("--max-usd", type=click.FloatRange(min=0), help="End the turn at this cost.")
@click.option("--max-steps", type=click.IntRange(min=1), help="End the turn after so many requests.")
@click.option("--check", metavar="CMD", default="", help="The task is done only when this command passes.")
@click.option(
    "--attempts",
    type=click.IntRange(min=1, max=20),
    default=1,
    help="With --check: try up to so many fresh answers, each from the same files.",
)
@click.option(
    "--output-schema",
    metavar="FILE",
    help="Answer with JSON that fits the JSON Schema in FILE; else the exit status is 1.",
)
@click.option("--image", "images", metavar="FILE", multiple=True, help="An image for the task; repeatable.")
@click.option("--trust", is_flag=True, help="Trust the workspace's own settings for this run.")
@turn_options
def command(
    task: tuple[str, ...],
    as_json: bool,
    session: str | None,
    check: str,
    attempts: int,
    *,
    raw: bool,
    images: tuple[str, ...],
    output_schema: str | None,
    **given: Any,
) -> int:
    """Do TASK and exit. `-` reads it from stdin. What would need your approval is refused.

    Progress goes to stderr, the answer to stdout; with --json every event goes to stdout. With --check the
    first answer that passes is kept; when none does, the files are restored and the exit status is 5.
    """
    words = read_stdin() if task == ("-",) else " ".join(task)
    if attempts > 1 and not check:
        raise click.UsageError("--attempts goes with --check CMD.")
    schema = read_schema(output_schema) if output_schema else None
    message = SendMessage(text=message_text(words), check=check, attempts=attempts, output_schema=schema)
    return run_headless(
        options_for(given),
        message,
        session=session,
        as_json=as_json,
        raw=raw,
        images=[user_path(each) for each in images],
    )


def read_stdin() -> str:
    if sys.stdin is None:
        raise UsageProblem('stdin is closed, so there is no task in it. Give the task: handrail run "TASK"')
    raw = sys.stdin.buffer.read(MAX_TASK_BYTES + 1)
    if len(raw) > MAX_TASK_BYTES:
        raise UsageProblem(f"The task on stdin is longer than {MAX_TASK_BYTES:,} bytes. Put it into a file.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        text = "The task on stdin is not UTF-8 text. Put it into a file, and name that."
        raise UsageProblem(text) from error


def read_schema(name: str) -> dict[str, Any]:
    """The JSON Schema in a file; raises UsageProblem where there is none."""
    from handrail.app.command_checks import check_output_schema
    from handrail.config.open_file import read_file

    try:
        schema: dict[str, Any] = json.loads(read_file(user_path(name), MAX_SCHEMA_BYTES))
        check_output_schema(schema)
    except OSError as error:
        raise UsageProblem(f"{name} cannot be read: {error.strerror or error}.") from error
    except json.JSONDecodeError as error:
        raise UsageProblem(
            f"{name}:{error.lineno}: not valid JSON: {error.msg}. Correct this line."
        ) from error
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"{name} is not JSON in UTF-8.") from error
    except UsageProblem as problem:
        raise UsageProblem(f"{name}: {problem}") from problem
    return schema


def run_headless(
    options: "Options",
    message: SendMessage,
    *,
    session: str | None,
    as_json: bool,
    raw: bool = False,
    images: "Sequence[Path]" = (),
) -> int:
    import anyio

    async def run() -> int:
        async with opened_app(options) as app:
            session_id = app.find_session(session) if session is not None else ""
            if notice := await app.check_mode(session_id):
                print_text(f"handrail: {notice}", file=sys.stderr)
            await app.chosen_model(session_id)
            report = (
                JsonReport()
                if as_json
                else TextReport(app.settings.display, raw=raw, by_schema=message.output_schema is not None)
            )
            status_line = StatusLine(
                live=terminal.is_terminal(sys.stderr) and not as_json,
                colour=terminal.use_colour(sys.stderr, app.settings.display),
            )
            pictures = tuple(app.images.named(file) for file in images)
            whole = replace(message, images=pictures, route=options.route)
            return await one_turn(app, session_id or app.new_session(), whole, report, status_line)

    return anyio.run(run)


async def one_turn(
    app: "App", session_id: str, message: SendMessage, report: "Report", status_line: StatusLine
) -> int:
    import anyio

    status = STATUSES["failed"]
    after = app.last_seq(session_id) if app.state(session_id).turns else 0
    await app.send(session_id, message)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_on_signals, app, session_id)
        tasks.start_soon(status_line.tick)
        turn_id, refused = "", False
        async for item in app.follow(session_id, after):
            if isinstance(item, events.Delta):
                status_line.heard(item)
                continue
            status_line.saw(item)
            report.saw(item)
            match item.event:
                case events.UserMessage() as event if event.message_id == message.message_id:
                    turn_id = event.turn_id
                case events.ToolFinished(error=error) if error and error.reason == "nobody_to_ask":
                    refused = True
                case events.TurnFinished() as event if event.turn_id == turn_id:
                    denied = refused and event.reason == "answered"
                    status = terminal.NOBODY_TO_ASK if denied else STATUSES[event.reason]
                    break
        report.finish()
        tasks.cancel_scope.cancel()
    return status


async def cancel_on_signals(app: "App", session_id: str) -> None:
    """Stop the turn at the first signal, the program at the second or when the stop takes too long."""
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

    def saw(self, recorded: events.Recorded) -> None:
        head = {"seq": recorded.seq, "at": round(recorded.at, 3)}
        print_json(head | to_dict(recorded.event))

    def finish(self) -> None:
        pass


class TextReport:
    """Progress on stderr as it happens; the last answer on stdout at the end."""

    def __init__(self, display: "DisplaySettings", *, raw: bool, by_schema: bool) -> None:
        self._raw = raw
        self._by_schema = by_schema
        self._colour = terminal.use_colour(sys.stderr, display)
        self._answer_colour = terminal.use_colour(sys.stdout, display)
        self._answer = ""

    @cached_property
    def _screen(self) -> "Screen":
        from handrail.interfaces.cli.render.screen import Screen

        return Screen(terminal.terminal_width(sys.stderr), colour=self._colour)

    def saw(self, recorded: events.Recorded) -> None:
        event = recorded.event
        works = isinstance(event, events.StageStarted) and event.kind == "work"
        plain = isinstance(event, events.RunStarted) and not event.budget
        if works or plain or isinstance(event, SILENT_EVENTS):
            return
        if isinstance(event, events.OutputAccepted):
            self._answer = event.output
            return
        if isinstance(event, events.Answered) and not event.calls and self._by_schema:
            return  # an answer that does not fit must not reach the program that reads it
        if isinstance(event, events.Answered) and not event.calls:
            self._answer = self._answer if event.apart else event.text
            return
        if isinstance(event, events.RunPaused | events.BreakoutPending | events.RunCompleted):
            self._answer = event.text or self._answer
            return
        if isinstance(event, events.TurnFinished) and event.reason == "answered":
            self.finish()
        if isinstance(event, events.UserMessage):
            if event.unattached:
                from handrail.interfaces.cli.render.events import unattached_lines

                self._write(unattached_lines(event, self._screen.width))
        else:
            self._write(self._screen.show(event))

    def finish(self) -> None:
        text, self._answer = self._answer.rstrip("\n"), ""
        if text and terminal.is_terminal(sys.stdout) and not self._by_schema:
            from handrail.interfaces.cli.render.markdown import render_markdown

            rows = render_markdown(text, terminal.terminal_width(sys.stdout), colour=self._answer_colour)
            terminal.print_lines(rows, colour=self._answer_colour)
        elif text and self._raw:
            print_data(text)
        elif text:
            print_text(text)

    def _write(self, rows: list[Line]) -> None:
        terminal.print_lines(rows, colour=self._colour, file=sys.stderr)


Report = JsonReport | TextReport
