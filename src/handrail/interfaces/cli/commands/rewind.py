"""`handrail undo`, `redo` and `rewind`: preview, ask, send to the session, wait for the result."""

import shlex
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
from msgspec.structs import replace

from handrail.interfaces.cli import terminal
from handrail.interfaces.cli.conversation.questions import choice_key, describe_keys
from handrail.interfaces.cli.options import opened_app, options_for, rewind_options
from handrail.interfaces.cli.render import rewind_preview
from handrail.interfaces.cli.render.styles import clean, format_clock, line, wrap
from handrail.interfaces.cli.terminal import print_lines, print_text, terminal_width
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.errors import StorageBusy, Undecided, UsageProblem
from handrail.protocol.events import ChangePrepared, CopyKept, Recorded, Redone, RewindRefused, Rewound

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.history.changes import FilePlan, RewindPreview

FAILED = 1
HOLDER_SECONDS = 60.0
"""How long to wait for another process that holds the session and is idle."""
TURN_SECONDS = 1800.0
"""How long to wait for one whose turn has to end first."""
NOTICE_SECONDS = 1.0
GRACE_SECONDS = 1.0
MAX_ADVISED = 5

Part = Literal["files", "conversation", "both"]
MakeCommand = Callable[["App", str], Rewind | Redo]


class RewindOptions(NamedTuple):
    session: str
    accept: tuple[str, ...]
    leave: tuple[str, ...]
    dry_run: bool
    part: Part | None = None
    yes: bool = False
    asks: bool = True
    """False: do it at once where no file needs a decision."""


def run_rewind(given: dict[str, Any], make: MakeCommand, *, asks: bool) -> int:
    """Show what would be done, ask, do it, and return the exit status."""
    import anyio

    from handrail.app.history.changes import preview_rewind

    options = options_for(given)
    known = {name: given[name] for name in RewindOptions._fields if name in given}
    wanted = RewindOptions(**known, asks=asks)

    async def look() -> "tuple[RewindPreview, bool]":
        async with opened_app(options) as app:
            session_id = app.find_session(wanted.session)
            colour = terminal.use_colour(sys.stdout, app.settings.display)
            return preview_rewind(app, session_id, make(app, session_id)), colour

    async def do(command: Rewind | Redo) -> RewindResult:
        async with opened_app(options) as app:
            return await send_and_wait(app, found, command)

    found, colour = anyio.run(look)
    found.check_paths(wanted.accept, wanted.leave)
    undecided = found.undecided(command_with_options(found, wanted))
    at_once = not (wanted.asks or wanted.dry_run or undecided)
    rows = rewind_preview.preview_lines(found, terminal_width(sys.stdout), would=not at_once)
    print_lines(rows, colour=colour)
    if wanted.dry_run:
        print_text(f"Nothing was changed.{conflict_advice(undecided)}", file=sys.stderr)
        return 0
    flag = terminal.workspace_flag(options.workspace)
    if found.waits:
        again = f"{terminal.program_name()} resume {found.session_id}{flag}"
        raise UsageProblem(
            f"A turn of this session waits for your answer. `{again}` shows it: answer or stop it."
        )
    # The log is closed while the question is open: Ctrl-C at a prompt does not concern its event loop.
    command = confirmed(found, wanted, colour=colour)
    if isinstance(command, int):
        return command
    try:
        done = anyio.run(do, command)
    except KeyboardInterrupt:
        print_text(
            "handrail: It may still be done: `handrail changes` shows whether it was.", file=sys.stderr
        )
        raise
    session = f" --session {found.session_id}" if wanted.session else ""
    print_result(done, found, f"{terminal.program_name()} redo{session}{flag}")
    return 0


def command_with_options(found: "RewindPreview", wanted: RewindOptions) -> Rewind | Redo:
    paths = {"accept": wanted.accept, "leave": wanted.leave}
    if isinstance(found.command, Rewind) and wanted.part:
        files, conversation = wanted.part != "conversation", wanted.part != "files" and found.conversation > 0
        return replace(found.command, **paths, files=files, conversation=conversation)
    return replace(found.command, **paths)


def confirmed(found: "RewindPreview", wanted: RewindOptions, *, colour: bool) -> Rewind | Redo | int:
    """The command as the user wants it; an exit status where nothing is to be done."""
    command = command_with_options(found, wanted)
    files = isinstance(command, Redo) or command.files
    parts = {"f": files, "c": isinstance(command, Rewind) and command.conversation}
    if isinstance(command, Rewind) and not any(parts[way] for way in found.ways if way in parts):
        print_text("Nothing was changed: there is nothing that could be undone.", file=sys.stderr)
        return FAILED if found.files and files else 0
    undecided = found.undecided(command) if files else []
    if not undecided and (wanted.yes or not wanted.asks):
        return command
    if wanted.yes or not terminal.can_ask(sys.stdout):
        needs = "" if wanted.yes or not wanted.asks else " Give --yes, and --files, --conversation or --both."
        text = f"Nothing was changed: nobody can be asked here.{needs}{conflict_advice(undecided)}"
        print_text(f"handrail: {text}", file=sys.stderr)
        return terminal.NOBODY_TO_ASK
    question, keys = rewind_preview.confirm_question(found, command, part=wanted.part)
    while True:
        key = read_key(f"{question} [{'/'.join(keys)}, d shows the diffs] ", f"{keys}d")
        if key == "n":
            print_text("Nothing was changed.", file=sys.stderr)
            return 0
        if key != "d":
            return found.confirmed(command, key)
        print_lines(rewind_preview.preview_diffs(found, terminal_width(sys.stdout)), colour=colour)


def read_key(prompt: str, keys: str) -> str:
    """One of the keys, confirmed with Enter; nothing, or the end of the input, is a no."""
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # typed before the question could be read
    while True:
        try:
            key = choice_key(input(clean(prompt)), keys)
        except EOFError:
            print_text()
            return "n"
        if key:
            return key
        print_text(f"Answer with {describe_keys(keys)}.", file=sys.stderr)


def conflict_advice(undecided: "list[FilePlan]") -> str:
    advice = ""
    for file in undecided[:MAX_ADVISED]:
        name = shlex.quote(file.path)
        merge = f"--accept {name} accepts the merge, " if file.kind == "merge" else ""
        advice += f"\n  {merge}--leave {name} keeps the file as it is."
    more = len(undecided) - MAX_ADVISED
    return advice + (f"\n  The same for {more} more." if more > 0 else "")


class RewindResult(NamedTuple):
    event: Rewound | Redone
    prepared: ChangePrepared | None
    copies: tuple[CopyKept, ...]


async def send_and_wait(app: "App", found: "RewindPreview", command: Rewind | Redo) -> RewindResult:
    import anyio

    after = app.last_seq(found.session_id)
    await app.send(found.session_id, command)
    done: RewindResult | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(show_waiting, found)
        with anyio.move_on_after(TURN_SECONDS if found.running else HOLDER_SECONDS):
            done = await wait_for_result(app, found.session_id, command, after)
        tasks.cancel_scope.cancel()
    if done is None:
        # Done in this process, a large one may end after the deadline without a pause before it.
        with anyio.move_on_after(GRACE_SECONDS):
            done = await wait_for_result(app, found.session_id, command, after)
    if done is None:
        raise StorageBusy(
            "The process that holds this session has not answered. It may still do it: `handrail changes`"
            " shows whether it has."
        )
    return done


async def wait_for_result(app: "App", session_id: str, command: Rewind | Redo, after: int) -> RewindResult:
    from handrail.app.history.changes import with_change_numbers

    prepared: ChangePrepared | None = None
    copies: list[CopyKept] = []
    async for item in app.follow(session_id, after):
        match item:
            case Recorded(event=ChangePrepared(by="rollback") as event):
                prepared = event
            case Recorded(event=CopyKept() as event):
                copies.append(event)
            case Recorded(event=RewindRefused() as event) if event.request_id == command.request_id:
                why = with_change_numbers(event.why, app.history.changes(session_id))
                raise Undecided(why, event.conflicts) if event.conflicts else UsageProblem(why)
            case Recorded(event=(Rewound() | Redone()) as event) if event.request_id == command.request_id:
                return RewindResult(event, prepared, tuple(copies))
    raise StorageBusy("The session has ended. Try again.")


async def show_waiting(found: "RewindPreview") -> None:
    import anyio

    began = time.monotonic()
    await anyio.sleep(NOTICE_SECONDS)
    turn, holder = "the turn that is running in another terminal", "the process that holds the session"
    what = turn if found.running else holder
    if not terminal.is_terminal(sys.stderr):
        print_text(f"waiting for {what}", file=sys.stderr)
        return
    try:
        while True:
            text = f"waiting   for {what}   {format_clock(time.monotonic() - began)}"
            terminal.redraw(line(text), file=sys.stderr)
            await anyio.sleep(NOTICE_SECONDS)
    finally:
        terminal.redraw(file=sys.stderr)


def print_result(done: RewindResult, found: "RewindPreview", redo: str) -> None:
    from handrail.app.history.changes import with_change_numbers

    word = "Redone" if isinstance(done.event, Redone) else "Undone"
    text = with_change_numbers(rewind_preview.rewind_summary(done.event, done.prepared), found.changes)
    again = "" if isinstance(done.event, Redone) else f" `{redo}` undoes this."
    print_lines(wrap(line(f"{word}: {text}.{again}"), terminal_width(sys.stdout), "  "), colour=False)
    for copy in done.copies:
        text = f"Somebody wrote to {copy.path} at that moment; what they wrote is in {copy.copy_path}."
        print_text(f"handrail: {text}", file=sys.stderr)


@click.command()
@click.argument("change", metavar="[ID]", default="")
@rewind_options
def undo_command(change: str, **given: Any) -> int:
    """Undo the last change set that is in place, or the one named, and no other.

    It is done at once, unless somebody else changed a file since; `handrail redo` brings the change back.
    """
    from handrail.app.history.changes import undo_of

    return run_rewind(given, lambda app, session_id: undo_of(app, session_id, change), asks=False)


@click.command()
@rewind_options
def redo_command(**given: Any) -> int:
    """Bring back what the last rewind or undo undid."""
    return run_rewind(given, lambda _app, _session_id: Redo(), asks=False)


@click.command()
@click.argument("change", metavar="[ID]", default="")
@click.option("--turn", type=click.IntRange(min=1), help="Instead of ID: to before this turn.")
@click.option("--files", "part", flag_value="files", help="Rewind the files; the conversation stays.")
@click.option(
    "--conversation", "part", flag_value="conversation", help="Rewind the conversation; the files stay."
)
@click.option("--both", "part", flag_value="both", help="Rewind both.")
@click.option("--yes", is_flag=True, help="Do not ask; with --files, --conversation or --both.")
@rewind_options
def command(change: str, turn: int | None, **given: Any) -> int:
    """Go back to before change set ID, or before a turn: that and all later ones are undone.

    ID is a number from `handrail changes`, an id, the end of one, or the id of a message. You see first what
    would be done. What you or others wrote since is never lost: where it does not overlap it is merged, and
    where it does the file stays as it is. `handrail redo` undoes a rewind.
    """
    if bool(change) == bool(turn):
        raise click.UsageError("Say where to: a number from `handrail changes`, or --turn N.")
    if given["yes"] and not given["part"]:
        raise click.UsageError("--yes needs to know what to rewind: give --files, --conversation or --both.")

    def make(app: "App", session_id: str) -> Rewind | Redo:
        if turn:
            return app.history.before_turn(session_id, turn)
        to = change if change.startswith("m_") else app.history.find(session_id, change).id
        return Rewind(to=to, files=True, conversation=True)

    return run_rewind(given, make, asks=True)
