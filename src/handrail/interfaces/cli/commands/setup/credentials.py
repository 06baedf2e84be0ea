"""`handrail credentials`: list, store and remove keys and other secrets; their values are never shown."""

import os
import sys

import click

from handrail.config.credentials import Credentials
from handrail.config.places import find_places
from handrail.interfaces.cli.terminal import print_text, read_secret
from handrail.protocol.errors import UsageProblem


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context, /) -> None:
    """Stored keys and other secrets. `model/NAME` is the key of a connection.

    A key in the environment is used before a stored one. docs/credentials.md says how they are protected.
    """
    ctx.obj = Credentials(find_places(os.environ), os.environ)
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_names)


@command.command("list")
@click.pass_obj
def list_names(credentials: Credentials, /) -> None:
    """The names of what is stored."""
    names = credentials.names()
    for name in names:
        print_text(name)
    text = "Stored" if names else "None is stored. They would be"
    print_text(f"{text} {credentials.where()}.", file=sys.stderr)


@command.command("set")
@click.argument("name")
@click.pass_obj
def set_value(credentials: Credentials, /, name: str) -> None:
    """Store a secret under NAME. It is typed without being shown, or read from stdin."""
    credentials.set(name, read_secret(f"{name} (not shown)"))
    print_text(f"{name} is stored, {credentials.where()}.", file=sys.stderr)


@command.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All of them, with the key they were encrypted with.")
@click.pass_obj
def remove(credentials: Credentials, /, names: tuple[str, ...], everything: bool) -> None:
    """Remove what is stored under NAMES."""
    if everything == bool(names):
        raise UsageProblem("Give the names to remove, or --all. `handrail credentials` lists them.")
    stored = credentials.names()
    if missing := [name for name in names if name not in stored]:
        raise UsageProblem(
            f"Nothing is stored as {', '.join(missing)}. `handrail credentials` lists the names."
        )
    removed = credentials.delete(*(stored if everything else names))
    print_text(f"removed {', '.join(removed)}" if removed else "None is stored.", file=sys.stderr)
