"""`handrail serve`: the web page and the HTTP API."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.config.places import find_places
from handrail.interfaces.cli.options import collect_garbage
from handrail.interfaces.cli.terminal import print_text
from handrail.protocol.errors import HandrailError, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from handrail.interfaces.http.server import Server

REMOTE_WARNING = (
    "The server can be reached from other machines, over HTTP without encryption: whoever has the token, or "
    "can read the network on the way, can read this workspace and run commands as you. Prefer a tunnel: "
    "`ssh -L PORT:127.0.0.1:PORT` to this machine."
)


def web_routes(server: "Server") -> "Sequence[BaseRoute]":
    """The page's routes. Their imports take a third of the start: they wait until the address is printed."""
    from handrail.interfaces.web import routes

    return routes.web_routes(server)


async def open_all(server: "Server") -> None:
    """Open the folders before the first request needs them, and print what is to be known about each."""
    import handrail.interfaces.web.routes  # noqa: F401

    for workspace in server.workspaces.values():
        try:
            notices = (await workspace.app()).notices
        except HandrailError as problem:
            notices = [f"{workspace.root} cannot be opened: {problem}"]
        for notice in notices:
            print_text(f"handrail: {notice}", file=sys.stderr)


@click.command()
@click.argument("folders", nargs=-1, metavar="[FOLDER]...")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: 8642, or the next that is free.")
@click.option("--host", default="127.0.0.1", help="The address to listen on. Another one needs --token.")
@click.option(
    "--token",
    metavar="TEXT",
    envvar="HANDRAIL_TOKEN",
    help="The token that requests need, instead of your stored one; also from HANDRAIL_TOKEN.",
)
@click.option("--new-token", is_flag=True, help="Replace your stored token: open pages lose access.")
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
@click.option("--model", metavar="NAME", default="", help="The model, as connection/name.")
@click.option("--database", metavar="URL", help="Keep the sessions in this PostgreSQL database.")
def command(folders: tuple[str, ...], **given: Any) -> None:
    """Serve the web page and the HTTP API for this folder, or for each FOLDER, until Ctrl-C.

    The printed address has a token; whoever has it can do what you can do here.
    """
    host, token = given["host"], given["token"]
    roots = [Path(each).expanduser().absolute() for each in folders or (".",)]
    for root in roots:
        if not root.is_dir():
            raise UsageProblem(f"There is no folder {root}. Name existing ones.")

    import anyio

    from handrail.app.app import Options
    from handrail.app.environment import use_login_path
    from handrail.interfaces.http.access import Access, check_token, is_loopback, stored_token
    from handrail.interfaces.http.server import listen, open_server, serve

    if token is not None:
        check_token(token)
    elif not is_loopback(host):
        raise UsageProblem(f"Listening on {host} needs --token TEXT. {REMOTE_WARNING}")
    else:
        token = stored_token(find_places(os.environ), renew=given["new_token"])
    listening = listen(host, given["port"])
    access = Access(token, host, listening.getsockname()[1])

    def announce(server: "Server") -> None:
        if not is_loopback(host):
            print_text(f"WARNING: {REMOTE_WARNING}")
        print_text(f"Handrail is at {server.address_with_token}")
        if given["opens"]:
            import webbrowser

            webbrowser.open(server.address_with_token)
        server.tasks.start_soon(open_all, server)

    options = Options(roots[0], model=given["model"], database=given["database"])

    async def run() -> None:
        if problem := await use_login_path():
            print_text(f"handrail: {problem}", file=sys.stderr)
        async with open_server(roots, access, options) as server:
            collect_garbage()
            await serve(listening, server, web_routes, lambda: announce(server))

    anyio.run(run)
