"""The terminal: is it one, its width and colours, how to call this program, and everything that is printed.

All output of the command line goes through the functions here, which show control characters as text.
"""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import click

from handrail.config.settings import DisplaySettings
from handrail.interfaces.cli.render.styles import Line, ansi, clean
from handrail.protocol.errors import UsageProblem

PIPED_WIDTH = 100
PROGRAM = "handrail"
NOBODY_TO_ASK = 3
"""Exit status where a question would have to be asked and no terminal is there."""
MAX_SECRET = 100_000
"""Characters that are read from stdin; more than a credential may have."""


def is_terminal(stream: IO[str] | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def can_ask(output: IO[str] | None) -> bool:
    """Whether a person can read a question on this output and answer it."""
    return is_terminal(sys.stdin) and is_terminal(output)


def require_terminal() -> None:
    """Raise UsageProblem where no conversation is possible."""
    if can_ask(sys.stdout) and os.environ.get("TERM") != "dumb":
        return
    missing = "input" if not is_terminal(sys.stdin) else "output"
    what = "this terminal cannot move its cursor" if is_terminal(sys.stdout) else f"the {missing} is not one"
    raise UsageProblem(
        f"The conversation needs a terminal, and {what}. "
        'For one task without a terminal: handrail run "TASK", or handrail run - to read the task from stdin.'
    )


def use_colour(stream: IO[str] | None, display: DisplaySettings) -> bool:
    """Whether to write colours; NO_COLOR is one of the ways to set `display.color`."""
    if display.color != "auto":
        return display.color == "always"
    return is_terminal(stream) and os.environ.get("TERM") not in (None, "", "dumb")


def terminal_width(stream: IO[str] | None) -> int:
    return shutil.get_terminal_size((PIPED_WIDTH, 24)).columns - 1 if is_terminal(stream) else PIPED_WIDTH


ERASE_LINE = "\r\x1b[K"


def print_text(text: str = "", *, file: IO[str] | None = None, end: str = "\n") -> None:
    """Write text to stdout, or to the file, at once; what could act on a terminal is shown as text."""
    print(clean(text, tab="\t"), file=file, end=end, flush=True)


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Write JSON to stdout; it has no control characters."""
    print(json.dumps(value, indent=indent), flush=True)


def print_data(text: str) -> None:
    """Write text for another program to stdout: unchanged, unless a terminal shows it."""
    print(clean(text) if is_terminal(sys.stdout) else text, flush=True)


def print_bytes(data: bytes) -> None:
    """Write bytes for another program to stdout: unchanged, unless a terminal shows them."""
    if is_terminal(sys.stdout):
        print_text(data.decode(errors="backslashreplace"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def redraw(content: Line = (), *, colour: bool = False, file: IO[str] | None = None) -> None:
    """Replace the line that the cursor is in."""
    print(f"{ERASE_LINE}{ansi(content, colour=colour)}", end="", file=file, flush=True)


def redraw_block(rows: Sequence[Line], drawn: int, *, colour: bool, file: IO[str] | None = None) -> None:
    """Replace the lines above the cursor, as many as were drawn before."""
    up = f"\x1b[{drawn}A" if drawn else ""
    print(
        up + "".join(f"{ERASE_LINE}{ansi(row, colour=colour)}\n" for row in rows),
        end="",
        file=file,
        flush=True,
    )


def confirm(question: str, *, default: bool = False, err: bool = False) -> bool:
    """Ask a question that is answered with yes or no."""
    return click.confirm(clean(question), default=default, err=err)


def read_secret(question: str) -> str:
    """A secret: typed after the question without being shown, or the whole of stdin where nobody types."""
    if can_ask(sys.stderr):
        typed: str = click.prompt(clean(question), hide_input=True, err=True)
        return typed
    return sys.stdin.read(MAX_SECRET).removesuffix("\n")


def choose(question: str, choices: Sequence[str], default: str) -> str:
    """Ask on stderr for one of these words; its beginning is enough. Raises click.Abort for Ctrl-C."""

    def chosen(typed: str) -> str:
        found = [each for each in choices if typed and each.startswith(typed.strip().lower())]
        if len(found) != 1:
            raise click.BadParameter(f"answer {', '.join(choices[:-1])} or {choices[-1]}")
        return found[0]

    answer: str = click.prompt(clean(question), default=default, value_proc=chosen, err=True)
    return answer


def print_lines(rows: Iterable[Line], *, colour: bool, file: IO[str] | None = None) -> None:
    """Write lines to stdout, or to the file, each at once."""
    for row in rows:
        print(ansi(row, colour=colour), file=file, flush=True)


def page(rows: list[Line], *, colour: bool) -> None:
    """Write lines to stdout, through the user's pager where a person reads and the screen is too short."""
    if len(rows) >= shutil.get_terminal_size().lines and can_ask(sys.stdout):
        text = "".join(f"{ansi(row, colour=colour)}\n" for row in rows)
        # None lets click ask the pager whether it passes colours.
        click.echo_via_pager(text, color=None if colour else False)
    else:
        print_lines(rows, colour=colour)


def program_name() -> str:
    """`handrail` where the shell finds it, else what was typed to start this process."""
    if shutil.which(PROGRAM):
        return PROGRAM
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -P -m {PROGRAM}"
    return shlex.quote(str(called))


def workspace_flag(workspace: Path) -> str:
    """` -C FOLDER` where the shell is in another folder."""
    try:
        here = Path.cwd() == workspace
    except FileNotFoundError:
        here = False
    return "" if here else f" -C {shlex.quote(str(workspace))}"
