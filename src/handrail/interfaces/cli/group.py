"""The command line: commands are imported when they are called; an unknown first word begins a message."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from handrail.interfaces.cli.catalogue import COMMANDS, VERSION, help_text
from handrail.interfaces.cli.options import turn_options
from handrail.protocol.errors import UsageProblem

CONVERSATION = "conversation"
LISTED = "`handrail --help` lists them."
OF_SESSIONS = ("rename", "delete", "restore")


class Handrail(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return load(entry.module) if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if command := self.get_command(ctx, args[0]):
            return args[0], command, args[1:]
        refuse_misspelt(args)
        refuse_help(args)
        return CONVERSATION, load(CONVERSATION), args

    def get_help(self, ctx: click.Context) -> str:
        return help_text().rstrip()


def load(module: str) -> click.Command:
    """The command that a module of `commands` has."""
    found: click.Command = import_module(f"handrail.interfaces.cli.commands.{module}").command
    return found


def refuse_misspelt(arguments: list[str]) -> None:
    """One word that is almost a command was meant as one: a model need not be asked about it."""
    word = arguments[0]
    near = get_close_matches(word, COMMANDS, n=1, cutoff=0.75)
    if near and len(arguments) == 1 and word.isalpha():
        raise UsageProblem(
            f"There is no command {word!r}. Did you mean `handrail {near[0]}`? "
            f"To ask the model, write more than one word."
        )


def refuse_help(arguments: list[str]) -> None:
    """Help about a word that is no command would be help about the conversation."""
    word = arguments[0]
    if set(arguments) & {"-h", "--help"} and len(arguments) == 2 and not word.startswith("-"):
        advice = f"Did you mean `handrail sessions {word}`?" if word in OF_SESSIONS else LISTED
        raise UsageProblem(f"There is no command {word!r}. {advice}")


def print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(VERSION, nl=False)
        ctx.exit()


@click.group(
    cls=Handrail, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=print_version)
@turn_options
@click.pass_context
def handrail(ctx: click.Context, /, **_given: Any) -> Any:
    if ctx.invoked_subcommand is None:
        return ctx.invoke(load(CONVERSATION))
    return None
