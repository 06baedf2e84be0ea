"""`handrail run TASK`: one turn without a conversation."""

import sys
from typing import Any

import click

from handrail.interfaces.cli.headless import headless
from handrail.interfaces.cli.options import file_named, options_for, text_of, turn_options
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem

LONGEST_TASK = 10_000_000


@click.command()
@click.argument("task", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One event a line on stdout.")
@click.option("--session", metavar="ID", help="Go on with this session.")
@click.option("--max-usd", type=click.FloatRange(min=0), help="End the turn at this cost.")
@click.option("--max-steps", type=click.IntRange(min=1), help="End the turn after so many requests.")
@click.option("--check", metavar="CMD", default="", help="The task is done only when this command passes.")
@click.option(
    "--attempts",
    type=click.IntRange(min=1, max=20),
    default=1,
    help="With --check: so many fresh answers may be tried, each from the same files.",
)
@click.option(
    "--image", "images", metavar="FILE", multiple=True, help="A picture that goes with the task; repeatable."
)
@click.option("--trust", is_flag=True, help="Let the workspace's own settings count in full this once.")
@turn_options
def command(
    task: tuple[str, ...],
    as_json: bool,
    session: str | None,
    check: str,
    attempts: int,
    *,
    images: tuple[str, ...],
    **given: Any,
) -> int:
    """Do TASK and leave. `-` reads it from stdin. What would have to be asked is refused.

    Progress goes to stderr, the answer to stdout; with --json every event goes to stdout. With --check the
    first answer that passes is kept; when none does, the files are as they were and the status is 5.
    """
    words = from_stdin() if task == ("-",) else " ".join(task)
    if attempts > 1 and not check:
        raise click.UsageError("--attempts goes with --check CMD.")
    message = SendMessage(text=text_of(words), check=check, attempts=attempts)
    return headless(
        options_for(given),
        message,
        session=session,
        as_json=as_json,
        images=[file_named(each) for each in images],
    )


def from_stdin() -> str:
    """All of stdin as text."""
    if sys.stdin is None:
        raise UsageProblem('stdin is closed, so there is no task in it. Give the task: handrail run "TASK"')
    raw = sys.stdin.buffer.read(LONGEST_TASK + 1)
    if len(raw) > LONGEST_TASK:
        raise UsageProblem(f"The task on stdin is longer than {LONGEST_TASK:,} bytes. Put it into a file.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageProblem(
            "The task on stdin is not UTF-8 text. Put it into a file, and name that."
        ) from error
