"""The command line: loads a command when it is called; other words start a conversation."""

from importlib import import_module
from typing import Any

import click

from handrail.interfaces.cli.command_list import COMMANDS, VERSION, help_text
from handrail.interfaces.cli.options import turn_options
from handrail.protocol.errors import UsageProblem

CONVERSATION = "conversation"


class Handrail(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return load_command(entry.module, cmd_name) if entry else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if command := self.get_command(ctx, word):
            return word, command, args[1:]
        if ctx.resilient_parsing:  # a shell completes an unfinished line
            return CONVERSATION, load_command(CONVERSATION, CONVERSATION), args
        # Neither a word that is almost a command nor `WORD --help` is sent to a model.
        from difflib import get_close_matches

        near = get_close_matches(word, COMMANDS, n=1, cutoff=0.75)
        if near and len(args) == 1 and word.isalpha():
            raise UsageProblem(
                f"There is no command {word!r}. Did you mean `handrail {near[0]}`? "
                f"To ask the model, write more than one word."
            )
        if set(args) & {"-h", "--help"} and len(args) == 2 and not word.startswith("-"):
            known = word in ("rename", "delete", "restore", "label", "archive", "status")
            advice = f"Did you mean `handrail sessions {word}`?" if known else "`handrail --help` lists them."
            raise UsageProblem(f"There is no command {word!r}. {advice}")
        return CONVERSATION, load_command(CONVERSATION, CONVERSATION), args

    def get_help(self, ctx: click.Context) -> str:
        return help_text().rstrip()


def load_command(module: str, name: str) -> click.Command:
    """The command of this name: `NAME_command` in its module, or the module's only `command`."""
    loaded = import_module(f"handrail.interfaces.cli.commands.{module}")
    found: click.Command = getattr(loaded, f"{name}_command", None) or loaded.command
    return found


@click.group(
    cls=Handrail, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(VERSION, "-V", "--version", message=VERSION.rstrip())
@turn_options
@click.pass_context
def handrail(ctx: click.Context, /, **_given: Any) -> Any:
    return None if ctx.invoked_subcommand else ctx.invoke(load_command(CONVERSATION, CONVERSATION))
