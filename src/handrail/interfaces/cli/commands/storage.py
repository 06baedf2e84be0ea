"""`handrail storage`: what is kept, what it takes, and dropping what nothing needs."""

import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.figures import size
from handrail.interfaces.cli.opening import opened
from handrail.interfaces.cli.options import options_for, workspace_option
from handrail.interfaces.cli.terminal import is_terminal

if TYPE_CHECKING:
    from handrail.sessions.storage_use import StorageUse
    from handrail.storage.blobs import Room

NOBODY_ASKED = 3


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Show how much room the sessions of this folder take, and what of it is still needed."""
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        shown(given)


def shown(given: dict[str, Any]) -> None:
    import anyio

    async def run() -> None:
        async with opened(options_for(given)) as app:
            use = app.history.storage()
        spare = use.contents.contents - use.needed.contents
        spare_size = use.contents.size - use.needed.size
        sessions = f"{use.sessions} session{'s' * (use.sessions != 1)}"
        rows = [
            ("log", use.file_bytes, f"all of {sessions}, with the contents below"),
            ("contents", use.contents.size, f"{use.contents.contents:,}; they may take {size(use.limit)}"),
            (
                "  needed",
                use.needed.size,
                f"{use.needed.contents:,} versions of files, and pictures: they stay",
            ),
            ("  spare", spare_size, f"{spare:,} raw answers, outputs, and what deleted sessions had"),
            ("prune", use.droppable.size, f"{use.droppable.contents:,} go with `handrail storage prune`"),
        ]
        for name, room, what in rows:
            print(f"{name:<10} {size(room):>9}   {what}")

    anyio.run(run)


@command.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(given: dict[str, Any], /, yes: bool) -> int:
    """Drop the oldest of what nothing needs, until the contents take less than `storage.megabytes`.

    Nothing is dropped that a rewind, a redo or a conversation of a session that is not deleted still needs.
    """
    import anyio

    options = options_for(given)

    async def look() -> "StorageUse":
        async with opened(options) as app:
            return app.history.storage()

    async def drop() -> "Room":
        async with opened(options) as app:
            return app.history.prune()

    use = anyio.run(look)
    if not use.droppable.contents:
        within = use.contents.size <= use.limit
        why = (
            f"{size(use.contents.size)} of {size(use.limit)} are used"
            if within
            else "all of it is still needed"
        )
        print(f"There is nothing to drop: {why}.")
        return 0
    what = f"{use.droppable.contents:,} contents, {size(use.droppable.size)}"
    if not yes:
        if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
            print(
                f"handrail: Nothing was dropped: nobody can be asked here. Say --yes to drop {what}.",
                file=sys.stderr,
            )
            return NOBODY_ASKED
        if not click.confirm(f"Drop {what}?", default=False):
            return 0
    dropped = anyio.run(drop)
    print(f"Dropped {dropped.contents:,} contents, {size(dropped.size)}; the file uses the room again.")
    return 0
