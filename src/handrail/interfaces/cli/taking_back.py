"""Taking changes back from the shell: look, ask, send it to the session's holder, wait for what comes."""

import os
import shlex
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from handrail.interfaces.cli.choices import key_of, meaning
from handrail.interfaces.cli.figures import clock
from handrail.interfaces.cli.going_back import (
    Look,
    as_shown,
    check_paths,
    diffs_of,
    in_numbers,
    look,
    outcome,
    preview,
    question_of,
)
from handrail.interfaces.cli.opening import named, opened
from handrail.interfaces.cli.options import options_for
from handrail.interfaces.cli.program import elsewhere, program
from handrail.interfaces.cli.status_line import ERASE
from handrail.interfaces.cli.styles import Line, ansi, clean, line, wrap
from handrail.interfaces.cli.terminal import is_terminal, takes_colour, width_of
from handrail.protocol.commands import Redo, Rewind
from handrail.protocol.errors import StorageBusy, Undecided, UsageProblem
from handrail.protocol.events import ChangePrepared, CopyKept, Recorded, Redone, RewindRefused, Rewound

if TYPE_CHECKING:
    from handrail.app import App
    from handrail.changes.rollback import FilePlan

FAILED = 1
NOBODY_ASKED = 3
TAKEN_SECONDS = 60.0
"""For a holder that has nothing else to do."""
TURN_SECONDS = 1800.0
"""For one whose turn has to end first."""
TOLD_SECONDS = 1.0
LAST_SECONDS = 1.0
ADVISED = 5

Part = Literal["files", "conversation", "both"]
Wish = Callable[["App", str], Rewind | Redo]


class Said(NamedTuple):
    """What the command line says about it."""

    session: str = ""
    part: Part | None = None
    asks: bool = True
    """False: it is done at once where no file needs the user's word."""
    yes: bool = False
    dry_run: bool = False
    accept: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


def take_back(given: dict[str, Any], said: Said, wish: Wish) -> int:
    """The exit status, after showing what would be done, asking, and doing it."""
    import anyio

    options = options_for(given)

    async def looking() -> tuple[Look, bool]:
        async with opened(options) as app:
            session_id = named(app, said.session)
            colour = takes_colour(sys.stdout, app.settings.display, os.environ)
            return look(app, session_id, wish(app, session_id)), colour

    async def doing(command: Rewind | Redo) -> "Done":
        async with opened(options) as app:
            return await carried_out(app, found, command)

    found, colour = anyio.run(looking)
    check_paths(found, said.accept, said.leave)
    at_once = not (said.asks or said.dry_run or found.undecided(decided(found, said)))
    show(preview(found, width_of(sys.stdout), would=not at_once), colour=colour)
    if said.dry_run:
        told = advice(found.undecided(decided(found, said)))
        print(clean(f"Nothing was changed.{told}"), file=sys.stderr)
        return 0
    if found.waits:
        again = f"{program()} resume {found.session_id}{elsewhere(options.workspace)}"
        raise UsageProblem(
            f"A turn of this session waits for your answer. `{again}` shows it: answer or stop it."
        )
    # The question stands between two visits to the log: Ctrl-C at a prompt is no matter of its event loop.
    command = agreed(found, said, colour=colour)
    if isinstance(command, int):
        return command
    try:
        done = anyio.run(doing, command)
    except KeyboardInterrupt:
        print("handrail: It may still be done: `handrail changes` shows whether it was.", file=sys.stderr)
        raise
    tell(done, found, f"{program()} redo{elsewhere(options.workspace)}")
    return 0


def decided(found: Look, said: Said) -> Rewind | Redo:
    """The command with what the command line says."""
    words = {"accept": said.accept, "leave": said.leave}
    if isinstance(found.command, Rewind) and said.part:
        files, conversation = said.part != "conversation", said.part != "files" and found.conversation > 0
        return found.command.model_copy(update={**words, "files": files, "conversation": conversation})
    return found.command.model_copy(update=words)


# Asking


def agreed(found: Look, said: Said, *, colour: bool) -> Rewind | Redo | int:
    """The command as the user wants it; a status where it is not to be done."""
    command = decided(found, said)
    files = isinstance(command, Redo) or command.files
    wanted = {"f": files, "c": isinstance(command, Rewind) and command.conversation}
    if isinstance(command, Rewind) and not any(wanted[way] for way in found.ways if way in wanted):
        print("Nothing was changed: there is nothing that could go back.", file=sys.stderr)
        return FAILED if found.files and files else 0
    undecided = found.undecided(command) if files else []
    if not undecided and (said.yes or not said.asks):
        return command
    if said.yes or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        needs = "" if said.yes or not said.asks else " Say --yes, and --files, --conversation or --both."
        text = f"Nothing was changed: nobody can be asked here.{needs}{advice(undecided)}"
        print(f"handrail: {clean(text)}", file=sys.stderr)
        return NOBODY_ASKED
    return asked(found, command, said, colour=colour)


def asked(found: Look, command: Rewind | Redo, said: Said, *, colour: bool) -> Rewind | Redo | int:
    """What the user says at the terminal."""
    question, keys = question_of(found, command, part=said.part)
    while True:
        key = pressed(f"{question} [{'/'.join(keys)}, d shows the diffs] ", f"{keys}d")
        if key == "n":
            print("Nothing was changed.", file=sys.stderr)
            return 0
        if key != "d":
            return as_shown(found, command, key)
        show(diffs_of(found, width_of(sys.stdout)), colour=colour)


def pressed(prompt: str, keys: str) -> str:
    """One of the keys, confirmed with Enter; nothing, or an end of the input, is a no."""
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # what was typed before it could be read
    while True:
        try:
            key = key_of(input(prompt), keys)
        except EOFError:
            print()
            return "n"
        if key:
            return key
        print(f"An answer is {meaning(keys)}.", file=sys.stderr)


def advice(undecided: "list[FilePlan]") -> str:
    """What to say on the command line about the files that need a word."""
    told = ""
    for file in undecided[:ADVISED]:
        name = shlex.quote(file.path)
        merge = f"--accept {name} takes the merge, " if file.kind == "merge" else ""
        told += f"\n  {merge}--leave {name} keeps the file as it is."
    more = len(undecided) - ADVISED
    return told + (f"\n  The same for {more} more." if more > 0 else "")


# Doing


class Done(NamedTuple):
    event: Rewound | Redone
    prepared: ChangePrepared | None
    copies: tuple[CopyKept, ...]


async def carried_out(app: "App", found: Look, command: Rewind | Redo) -> Done:
    """Send it, and wait until the holder, this process or another, has done or refused it."""
    import anyio

    after = app.last_seq(found.session_id)
    await app.send(found.session_id, command)
    done: Done | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell_waiting, found)
        with anyio.move_on_after(TURN_SECONDS if found.running else TAKEN_SECONDS):
            done = await what_came(app, found.session_id, command, after)
        tasks.cancel_scope.cancel()
    if done is None:
        with anyio.move_on_after(LAST_SECONDS):  # a large one, done here, leaves no time to look at the clock
            done = await what_came(app, found.session_id, command, after)
    if done is None:
        raise StorageBusy(
            "The process that holds this session has not answered. It was told what to do, and may still do"
            " it: `handrail changes` shows whether it has."
        )
    return done


async def what_came(app: "App", session_id: str, command: Rewind | Redo, after: int) -> Done:
    prepared: ChangePrepared | None = None
    copies: list[CopyKept] = []
    async for item in app.follow(session_id, after):
        match item:
            case Recorded(event=ChangePrepared(by="rollback") as event):
                prepared = event
            case Recorded(event=CopyKept() as event):
                copies.append(event)
            case Recorded(event=RewindRefused() as event) if event.request_id == command.request_id:
                why = in_numbers(event.why, app.history.changes(session_id))
                raise Undecided(why, event.conflicts) if event.conflicts else UsageProblem(why)
            case Recorded(event=(Rewound() | Redone()) as event) if event.request_id == command.request_id:
                return Done(event, prepared, tuple(copies))
    raise StorageBusy("The session has ended. Try again.")


async def tell_waiting(found: Look) -> None:
    """Say what is waited for, once it takes a while."""
    import anyio

    began = time.monotonic()
    await anyio.sleep(TOLD_SECONDS)
    what = "the turn that runs in another terminal" if found.running else "the process that holds the session"
    if not is_terminal(sys.stderr):
        print(f"waiting for {what}", file=sys.stderr, flush=True)
        return
    try:
        while True:
            text = f"{ERASE}waiting   for {what}   {clock(time.monotonic() - began)}"
            print(text, end="", file=sys.stderr, flush=True)
            await anyio.sleep(TOLD_SECONDS)
    finally:
        print(ERASE, end="", file=sys.stderr, flush=True)


def tell(done: Done, found: Look, redo: str) -> None:
    """What came of it."""
    word = "Redone" if isinstance(done.event, Redone) else "Taken back"
    text = in_numbers(outcome(done.event, done.prepared), found.changes)
    again = "" if isinstance(done.event, Redone) else f" `{redo}` undoes this."
    show(wrap(line(f"{word}: {text}.{again}"), width_of(sys.stdout), "  "), colour=False)
    for copy in done.copies:
        text = f"Somebody wrote to {copy.path} at that moment; what they wrote is in {copy.copy_path}."
        print(clean(f"handrail: {text}"), file=sys.stderr)


def show(rows: list[Line], *, colour: bool) -> None:
    for row in rows:
        print(ansi(row, colour=colour))
