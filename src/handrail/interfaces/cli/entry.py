"""The very top of the terminal: every way a command can end becomes a message and an exit status."""

import errno
import os
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

CANCELLED = 130
CRASHED = 1
OUTPUT_GONE = (errno.EPIPE, errno.EIO, errno.ENOSPC)
"""What reads our output has left, the terminal was closed, or the disk that takes it is full."""


def run(arguments: list[str]) -> int:
    """Run the command line; the status for the shell."""
    try:
        from handrail.interfaces.cli.group import handrail

        status = handrail.main(args=arguments, prog_name="handrail", standalone_mode=False)
        _flush()
        return status if isinstance(status, int) else 0
    except BaseException as error:  # noqa: BLE001
        if os.environ.get("HANDRAIL_DEBUG") == "1" and not isinstance(error, SystemExit):
            traceback.print_exc()
        return status_of(error)


def status_of(error: BaseException) -> int:
    """The exit status that an error stands for, after saying on stderr what there is to say."""
    import click

    from handrail.protocol.errors import HandrailError

    first = leaf(error)
    match first:
        case HandrailError():
            tell(str(first))
            return first.exit_status
        case click.exceptions.Exit():
            return first.exit_code
        case click.exceptions.NoArgsIsHelpError():
            print(first.format_message(), file=sys.stderr)
            return first.exit_code
        case click.UsageError():
            path = first.ctx.command_path if first.ctx else "handrail"
            tell(f"{first.format_message().rstrip('.')}. See `{path} --help`.")
            return first.exit_code
        case click.ClickException():
            tell(first.format_message())
            return first.exit_code
        case KeyboardInterrupt() | click.Abort():
            return CANCELLED
        case OSError() if first.errno in OUTPUT_GONE:
            if not isinstance(first, BrokenPipeError):
                tell(f"The output could not be written: {first.strerror}. The session is kept.")
            # Python would complain about it once more while it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return CRASHED
        case SystemExit():
            return first.code if isinstance(first.code, int) else CRASHED
        case _:
            tell(f"Handrail crashed: {type(first).__name__}: {first}. {kept(error)}")
            return CRASHED


def leaf(error: BaseException) -> BaseException:
    """The error that tells most: of a group the first of ours, else the first."""
    from handrail.protocol.errors import HandrailError

    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [leaf(inner) for inner in error.exceptions]
    return next((one for one in leaves if isinstance(one, HandrailError)), leaves[0])


def tell(message: str) -> None:
    """One message on stderr."""
    from handrail.interfaces.cli.styles import clean

    if sys.stderr is not None:
        with suppress(OSError):  # the terminal may be gone
            print(f"handrail: {clean(message)}", file=sys.stderr, flush=True)


def kept(error: BaseException) -> str:
    """Where the crash report is, for the user."""
    from handrail import __version__
    from handrail.config.places import find_places, make_private
    from handrail.protocol.errors import HandrailError

    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    text = f"handrail {__version__}, Python {sys.version}\n\n{''.join(traceback.format_exception(error))}"
    try:
        path: Path = make_private(find_places(os.environ).data / "crashes") / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, HandrailError):
        return "A report could not be written; HANDRAIL_DEBUG=1 shows more."
    return f"This is a mistake in Handrail; the report is in {path}"


def _flush() -> None:
    """Fail here, where it is caught, when nobody takes the output."""
    if sys.stdout is not None:
        sys.stdout.flush()
