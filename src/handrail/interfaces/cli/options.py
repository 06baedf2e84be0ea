"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import Mode

if TYPE_CHECKING:
    from handrail.app import Options

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def workspace_option(command: Decorated) -> Decorated:
    """-C, for every command that works on a folder."""
    return click.option("-C", "--workspace", metavar="DIR", help="The folder to work on.")(command)


def session_option(command: Decorated) -> Decorated:
    """--session, for what concerns one of them."""
    return click.option(
        "--session", metavar="ID", default="", help="The session, as `resume` knows it; the last otherwise."
    )(command)


def intent_option(command: Decorated) -> Decorated:
    """--intent, for what writes."""
    return click.option("--intent", metavar="ID", help="The intent that what is done belongs to.")(command)


def deciding_options(command: Decorated) -> Decorated:
    """For taking changes back: looking only, and the user's word on files that others changed since."""
    command = click.option(
        "--leave", metavar="PATH", multiple=True, help="Keep this file as it is; repeatable."
    )(command)
    command = click.option(
        "--accept", metavar="PATH", multiple=True, help="Take the merge of this file; repeatable."
    )(command)
    return click.option("--dry-run", is_flag=True, help="Only show what would be done.")(command)


def turn_options(command: Decorated) -> Decorated:
    """What holds for turns: folder, model, mode, allowed commands."""
    command = click.option(
        "--allow",
        metavar="COMMAND",
        multiple=True,
        help="A command that needs no asking, by its first words; it counts in mode auto.",
    )(command)
    command = click.option(
        "--mode", type=click.Choice(get_args(Mode)), help="What may be done without asking."
    )(command)
    command = click.option(
        "--route", metavar="ROUTE", help="Where messages go: auto, agent, chat, or an agent's name."
    )(command)
    command = intent_option(command)
    command = click.option("--model", metavar="NAME", help="The model, as connection/name.")(command)
    return workspace_option(command)


def options_for(given: dict[str, Any], *, answerable: bool = False) -> "Options":
    """What the application is opened with: the command's own options, else those before its name."""
    from handrail.app import Options

    inherited = click.get_current_context().find_root().params
    values = {
        name: given.get(name) or inherited.get(name)
        for name in ("workspace", "model", "mode", "route", "intent", "allow")
    }
    return Options(
        workspace=folder(values["workspace"] or "."),
        model=values["model"] or "",
        mode=values["mode"],
        route=values["route"] or "",
        intent=values["intent"] or "",
        allow=tuple(values["allow"] or ()),
        answerable=answerable,
        trust=bool(given.get("trust")),
        max_usd=given.get("max_usd"),
        max_steps=given.get("max_steps"),
    )


def folder(text: str) -> Path:
    """The folder that was named, as an absolute path."""
    path = file_named(text)
    try:
        found = path.resolve(strict=True)
    except FileNotFoundError as error:
        raise UsageProblem(f"There is no folder {text}. Name an existing one with -C.") from error
    except (OSError, RuntimeError) as error:
        raise UsageProblem(f"The folder {text} cannot be opened: {error}.") from error
    if not found.is_dir():
        raise UsageProblem(f"{text} is a file, not a folder. Name the folder that it is in.")
    return found


def file_named(text: str) -> Path:
    """A file as a person names it, `~` included."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageProblem(f"{text} cannot be found: {error}.") from error


def text_of(argument: str) -> str:
    """A message from the command line; UsageProblem where it is empty or no text."""
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        raise UsageProblem("The message is not valid UTF-8. Give it as UTF-8 text.") from error
    if not argument.strip():
        raise UsageProblem('The message is empty. Say what to do: handrail run "fix the failing test"')
    return argument
