"""Run the command line; every error becomes a message and an exit status."""

import errno
import os
import sys
from contextlib import suppress

CANCELLED = 130
CRASHED = 1
OUTPUT_GONE = (errno.EPIPE, errno.EIO, errno.ENOSPC)
"""The reader of our output has gone, the terminal was closed, or the disk is full."""


def run_cli(arguments: list[str]) -> int:
    try:
        status = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()  # an error is caught here
    except BaseException as error:  # noqa: BLE001
        if os.environ.get("HANDRAIL_DEBUG") == "1" and not isinstance(error, SystemExit):
            import traceback

            from handrail.interfaces.cli.terminal import print_text

            print_text(traceback.format_exc(), file=sys.stderr)
        status = exit_status_of(error)
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # a closed pipe or terminal: with text left for it, Python would end with status 120
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    return status


def _run(arguments: list[str]) -> int:
    # Answered before anything slow is imported.
    if arguments in (["--version"], ["-V"], ["--help"], ["-h"]):
        from handrail.interfaces.cli.command_list import VERSION, help_text

        print(VERSION if arguments[0] in ("--version", "-V") else help_text(), end="")
        return 0
    from handrail.interfaces.cli.group import handrail

    status = handrail.main(args=arguments, prog_name="handrail", standalone_mode=False)
    return status if isinstance(status, int) else 0


def exit_status_of(error: BaseException) -> int:
    """Print the error on stderr and return its exit status."""
    import click

    from handrail.protocol.errors import HandrailError

    first = root_error(error)
    match first:
        case HandrailError():
            print_error(str(first))
            return first.exit_status
        case click.exceptions.Exit():
            return first.exit_code
        case click.exceptions.NoArgsIsHelpError():
            from handrail.interfaces.cli.terminal import print_text

            print_text(first.format_message(), file=sys.stderr)
            return first.exit_code
        case click.UsageError():
            path = first.ctx.command_path if first.ctx else "handrail"
            print_error(f"{first.format_message().rstrip('.')}. See `{path} --help`.")
            return first.exit_code
        case click.ClickException():
            print_error(first.format_message())
            return first.exit_code
        case KeyboardInterrupt() | click.Abort():
            return CANCELLED
        case OSError() if first.errno in OUTPUT_GONE:
            if not isinstance(first, BrokenPipeError):
                print_error(f"The output could not be written: {first.strerror}. The session is kept.")
            return CRASHED
        case SystemExit():
            return first.code if isinstance(first.code, int) else CRASHED
        case _:
            print_error(f"Handrail crashed: {type(first).__name__}: {first}. {write_crash_report(error)}")
            return CRASHED


def root_error(error: BaseException) -> BaseException:
    """Of a group, the first of our own errors, else the first."""
    from handrail.protocol.errors import HandrailError

    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [root_error(inner) for inner in error.exceptions]
    return next((one for one in leaves if isinstance(one, HandrailError)), leaves[0])


def print_error(message: str) -> None:
    from handrail.interfaces.cli.terminal import print_text

    if sys.stderr is not None:
        with suppress(OSError):  # the terminal may be gone
            print_text(f"handrail: {message}", file=sys.stderr)


def write_crash_report(error: BaseException) -> str:
    """Write a report and return a sentence that says where it is."""
    import time
    import traceback

    from handrail import __version__
    from handrail.config.places import find_places, make_private
    from handrail.protocol.errors import HandrailError

    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    text = f"handrail {__version__}, Python {sys.version}\n\n{''.join(traceback.format_exception(error))}"
    try:
        path = make_private(find_places(os.environ).data / "crashes") / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, HandrailError):
        return "A report could not be written; HANDRAIL_DEBUG=1 shows more."
    return f"This is a bug in Handrail; the report is in {path}"
