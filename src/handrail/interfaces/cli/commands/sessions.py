"""`handrail sessions`: list them; rename, delete, restore one."""

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.opening import named, opened
from handrail.interfaces.cli.options import options_for, workspace_option
from handrail.interfaces.cli.session_list import session_lines
from handrail.interfaces.cli.styles import ansi
from handrail.interfaces.cli.terminal import takes_colour, width_of
from handrail.protocol.commands import Command, Delete, Rename, Restore
from handrail.protocol.errors import StorageBusy

if TYPE_CHECKING:
    from handrail.sessions.state import State

TAKEN_SECONDS = 10.0


@click.group(invoke_without_command=True)
@click.option("--all", "with_deleted", is_flag=True, help="Deleted ones too.")
@click.option("--json", "as_json", is_flag=True, help="One session a line, as JSON.")
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, with_deleted: bool, as_json: bool, **given: Any) -> None:
    """List the sessions of this folder, the last used first."""
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        show(given, with_deleted=with_deleted, as_json=as_json)


@command.command()
@click.argument("session")
@click.argument("title", nargs=-1, required=True)
@click.pass_obj
def rename(given: dict[str, Any], /, session: str, title: tuple[str, ...]) -> None:
    """Give a session another title."""
    name = " ".join(" ".join(title).split())
    tell(given, session, Rename(title=name), f"is now called {name}")


@command.command()
@click.argument("session")
@click.pass_obj
def delete(given: dict[str, Any], /, session: str) -> None:
    """Hide a session from lists; `restore` brings it back."""
    tell(given, session, Delete(), "is deleted; `handrail sessions restore {id}` brings it back")


@command.command()
@click.argument("session")
@click.pass_obj
def restore(given: dict[str, Any], /, session: str) -> None:
    """Bring a deleted session back."""
    tell(given, session, Restore(), "is back")


def show(given: dict[str, Any], *, with_deleted: bool, as_json: bool) -> None:
    import anyio

    async def run() -> None:
        async with opened(options_for(given)) as app:
            infos = app.sessions(deleted=with_deleted)
            if as_json:
                for info in infos:
                    print(json.dumps(info._asdict()))
                return
            colour = takes_colour(sys.stdout, app.settings.display, os.environ)
            for row in session_lines(infos, time.time(), width_of(sys.stdout)):
                print(ansi(row, colour=colour))
            if not infos:
                print("No session in this folder yet. `handrail` starts one.", file=sys.stderr)

    anyio.run(run)


def tell(given: dict[str, Any], session: str, change: Command, done: str) -> None:
    """Send the session a command, and wait until it is a fact."""
    import anyio

    async def run() -> None:
        async with opened(options_for(given)) as app:
            session_id = named(app, session)
            await app.send(session_id, change)
            with anyio.move_on_after(TAKEN_SECONDS):
                async for _ in app.follow(session_id):
                    if has_happened(app.state(session_id), change):
                        print(f"{session_id} {done.replace('{id}', session_id)}.")
                        return
            raise StorageBusy(f"{session_id} is held by a process that does not answer. Try again later.")

    anyio.run(run)


def has_happened(state: "State", change: Command) -> bool:
    match change:
        case Rename():
            return state.title == change.title
        case Delete():
            return state.deleted
        case _:
            return not state.deleted
