"""Options that several commands share, and the application opened with them."""

import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from handrail.interfaces.cli.completion import (
    complete_folder,
    complete_intent,
    complete_route,
    complete_session,
)
from handrail.interfaces.cli.terminal import print_text
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Mode

if TYPE_CHECKING:
    from handrail.app.app import App, Options

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Result = TypeVar("Result")


def all_of(*options: Decorator) -> Decorator:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


workspace_option = click.option(
    *("-C", "--workspace"), metavar="DIR", help="The folder to work on.", shell_complete=complete_folder
)
session_option = click.option(
    "--session",
    metavar="ID",
    default="",
    help="The session, as `resume` knows it; default: the last.",
    shell_complete=complete_session,
)
intent_option = click.option(
    *("--intent",),
    metavar="ID",
    help="The intent that the changes belong to.",
    shell_complete=complete_intent,
)
rewind_options = all_of(
    click.option("--dry-run", is_flag=True, help="Only show what would be done."),
    click.option(
        "--accept", metavar="PATH", multiple=True, help="Accept the merge of this file; repeatable."
    ),
    click.option("--leave", metavar="PATH", multiple=True, help="Keep this file as it is; repeatable."),
    session_option,
    workspace_option,
)
turn_options = all_of(
    workspace_option,
    click.option("--model", metavar="NAME", help="The model, as connection/name."),
    intent_option,
    click.option(
        "--route",
        metavar="ROUTE",
        help="Where messages go: auto, agent, chat or an agent's name.",
        shell_complete=complete_route,
    ),
    click.option("--mode", type=click.Choice(get_args(Mode)), help="What may be done without asking."),
    click.option(
        "--allow",
        metavar="COMMAND",
        multiple=True,
        help="A command to run without asking in mode auto, by its first words.",
    ),
)


def options_for(given: dict[str, Any], *, answerable: bool = False) -> "Options":
    """The application's options: the command's own, else those before its name."""
    from handrail.app.app import Options

    inherited = click.get_current_context().find_root().params
    names = ("model", "mode", "route", "intent", "allow")
    values = {name: value for name in names if (value := given.get(name) or inherited.get(name))}
    return Options(
        **values,
        workspace=workspace_path(given),
        answerable=answerable,
        trust=bool(given.get("trust")),
        max_usd=given.get("max_usd"),
        max_steps=given.get("max_steps"),
    )


def workspace_path(given: dict[str, Any]) -> Path:
    """The folder to work on, as an absolute path: -C of the command, else before its name, else this one."""
    inherited = click.get_current_context().find_root().params.get("workspace")
    text = given.get("workspace") or inherited or "."
    try:
        found = user_path(text).resolve(strict=True)
    except FileNotFoundError as error:
        raise UsageProblem(f"There is no folder {text}. Name an existing one with -C.") from error
    except (OSError, RuntimeError) as error:
        raise UsageProblem(f"The folder {text} cannot be opened: {error}.") from error
    if not found.is_dir():
        raise UsageProblem(f"{text} is a file, not a folder. Name the folder that it is in.")
    return found


def user_path(text: str) -> Path:
    """A file as a person names it, `~` included."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageProblem(f"{text} cannot be found: {error}.") from error


def message_text(argument: str) -> str:
    """A message from the command line; raises UsageProblem where it is empty or not UTF-8."""
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        raise UsageProblem("The message is not valid UTF-8. Give it as UTF-8 text.") from error
    if not argument.strip():
        raise UsageProblem('The message is empty. Say what to do: handrail run "fix the failing test"')
    return argument


@asynccontextmanager
async def opened_app(options: "Options") -> AsyncIterator["App"]:
    """The application, after its notices: a repaired log, settings that were ignored."""
    from handrail.app.app import open_app

    async with open_app(options) as app:
        collect_garbage()
        for notice in app.notices:
            for text in notice.splitlines():
                print_text(f"handrail: {text}", file=sys.stderr)
        yield app


def run_with_app(given: dict[str, Any], run: "Callable[[App], Awaitable[Result]]") -> Result:
    """Open the application, run this with it, and return its result."""
    import anyio

    async def opened() -> Result:
        async with opened_app(options_for(given)) as app:
            return await run(app)

    return anyio.run(opened)


def ask_app(given: dict[str, Any], ask: "Callable[[App], Result]") -> Result:
    """Open the application and return its answer to one question."""

    async def run(app: "App") -> Result:
        return ask(app)

    return run_with_app(given, run)


def collect_garbage() -> None:
    """Turn the collector on, which `__main__` turned off; what is imported by now is never collected."""
    gc.freeze()
    gc.enable()
