"""`handrail storage`: how much disk space sessions take; `prune` deletes what nothing needs."""

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import ask_app, workspace_option, workspace_path
from handrail.interfaces.cli.render.events import parts_words
from handrail.interfaces.cli.render.styles import count_of, format_bytes
from handrail.interfaces.cli.terminal import NOBODY_TO_ASK, can_ask, confirm, print_text

if TYPE_CHECKING:
    from handrail.app.history.changes import SpareContents


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Show how much disk space the sessions of this folder take, and how much of it is still needed."""
    ctx.obj = given
    if ctx.invoked_subcommand:
        return
    use, copies = ask_app(given, lambda app: (app.history.storage(), app.history.scratch_copies().use()))
    contents, needed, spare, droppable = use.contents, use.needed, use.spare, use.droppable
    limit = format_bytes(use.limit)
    rows = [
        ("log", use.stored_bytes, f"all of {count_of(use.sessions, 'session')}, with the contents below"),
        ("contents", contents.size, f"{contents.contents:,}; the limit is {limit}"),
        ("  needed", needed.size, f"{needed.contents:,} versions of files, and pictures: they stay"),
        ("  spare", spare.size, f"{spare_words(spare)}: for `handrail audit`"),
        ("prune", droppable.size, f"{droppable.contents:,} are deleted by `handrail storage prune`"),
    ]
    if copies.copies:
        in_use = f", {copies.in_use} in use" if copies.in_use else ""
        what = f"{copies_words(copies.copies)} of this folder, for checks{in_use}; `prune` deletes the others"
        rows.append(("copies", copies.size, what))
    if use.database:
        print_text(f"database   {use.database}")
    for name, size, what in rows:
        print_text(f"{name:<10} {format_bytes(size):>9}   {what}")


def copies_words(number: int) -> str:
    return f"{number} scratch {'copy' if number == 1 else 'copies'}"


def deleted_words(spare: "SpareContents", copies: int) -> str:
    contents = [f"{spare_words(spare)}, {format_bytes(spare.size)}"] if spare.contents else []
    return " and ".join([*contents, *([copies_words(copies)] if copies else [])]) or "nothing"


def spare_words(spare: "SpareContents") -> str:
    return parts_words(*(kind.contents for kind in spare))


@command.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(given: dict[str, Any], /, yes: bool) -> int:
    """Delete the oldest contents that nothing needs, until they take less than `storage.megabytes`.

    Scratch copies that no check uses are deleted too; the next check makes a new one. Everything stays that a
    rewind, a redo or the conversation of a session that is not deleted still needs.
    """
    use, copies = ask_app(given, lambda app: (app.history.storage(), app.history.scratch_copies().use()))
    free = copies.copies - copies.in_use
    if not use.droppable.contents and not free:
        used = f"{format_bytes(use.contents.size)} of {format_bytes(use.limit)} are used"
        why = used if use.contents.size <= use.limit else "all of it is still needed"
        print_text(f"There is nothing to delete: {why}.")
        return 0
    what = deleted_words(use.droppable, free)
    if not yes:
        if not can_ask(sys.stdout):
            text = f"Nothing was deleted: nobody can be asked here. Give --yes to delete {what}."
            print_text(f"handrail: {text}", file=sys.stderr)
            return NOBODY_TO_ASK
        if not confirm(f"Delete {what}?", default=False):
            return 0
    dropped, removed = ask_app(
        given, lambda app: (app.history.prune(), app.history.scratch_copies().remove())
    )
    reuse = "; the log reuses the space" if dropped.size else ""
    print_text(f"Deleted {deleted_words(dropped, removed)}{reuse}.")
    return 0


@command.command()
@click.option("--to", "url", metavar="URL", required=True, help="postgresql://USER@HOST/DATABASE")
@click.pass_obj
def move(given: dict[str, Any], /, url: str) -> None:
    """Copy the sessions of this folder into a PostgreSQL database, byte for byte.

    No session may run meanwhile. A copy that was interrupted is continued by the next. The file stays as it
    was; from then on, use the database.
    """
    from handrail.app.history.move import copy_sessions
    from handrail.config.settings import without_password

    moved = copy_sessions(workspace_path(given), url, os.environ)
    sessions, events = count_of(moved.copied.streams, "stream"), count_of(moved.copied.events, "event")
    print_text(f"Copied {sessions}, {events} and {moved.copied.contents:,} contents to {moved.database}.")
    shown = shlex.quote(url) if url == without_password(url) else "URL"
    print_text(f"Use it from now on: handrail config set database.url {shown}")
    print_text(f"{moved.file} stays as it was.")
